"""How far the engine sees: steps far below a scheduler's loop, and names that a module it does not read hands on."""

RUNNER = '''
import torch


class Runner:
    def __init__(self, config, device):
        self.state_indices = torch.zeros(config.max_num_seqs, dtype=torch.int32, device=device)

    def execute_model(self, batch, num_reqs, num_reqs_padded):
        self.state_indices[:num_reqs].copy_(batch.state_indices)
        self.model(self.state_indices[:num_reqs_padded])
'''
STALE = ("GL301", "state_indices", "self.state_indices[:num_reqs].copy_(batch.state_indices)")


def loop_above(levels):
    """A loop that reaches the runner through as many methods."""
    counts = "batch, num_reqs, num_reqs_padded"
    methods = "".join(
        f"    def level_{number}(self, {counts}):\n        self.level_{number + 1}({counts})\n\n" for number in range(levels)
    )
    return (
        "from engine.runner import Runner\n\n\nclass Scheduler:\n    def __init__(self, config, device):\n"
        f"        self.runner = Runner(config, device)\n\n{methods}    def level_{levels}(self, {counts}):\n"
        f"        self.runner.execute_model({counts})\n"
    )


def test_a_step_is_seen_however_far_it_is_below_what_calls_it(check):
    for levels in (1, 6, 9, 20):
        assert check({"engine/runner.py": RUNNER, "engine/loop.py": loop_above(levels)}).reported == [STALE], levels


def test_a_step_is_seen_below_a_loop_that_does_very_much(check):
    much = "\n".join(f"        self.runner.other_{number}[:count].copy_(batch.rows)" for number in range(20))
    calls = "".join(f"        self.much(batch, {number})\n" for number in range(400))
    loop = (
        "from engine.runner import Runner\n\n\nclass Scheduler:\n    def __init__(self, config, device):\n"
        f"        self.runner = Runner(config, device)\n\n    def much(self, batch, count):\n{much}\n\n"
        f"    def event_loop(self, batch, num_reqs, num_reqs_padded):\n{calls}"
        "        self.runner.execute_model(batch, num_reqs, num_reqs_padded)\n"
    )
    assert check({"engine/runner.py": RUNNER, "engine/loop.py": loop}).reported == [STALE]


KERNELS = '''
import triton
import triton.language as tl


@triton.jit
def _stage_kernel(out_ptr, source_ptr):
    lane = tl.program_id(0)
    tl.store(out_ptr + lane, tl.load(source_ptr + lane))


def stage_indices(out, source, num_reqs):
    _stage_kernel[(num_reqs,)](out, source)
'''
#: no word in it that a rule asks for, as long as the checked tree is more than a few files
BRIDGE = "from engine.kernels import stage_indices\n\n__all__ = ['stage_indices']\n" + "# filling\n" * 120_000


def test_names_that_a_module_without_interest_hands_on(check):
    files = {
        "engine/kernels.py": KERNELS,
        "engine/bridge.py": BRIDGE,
        "engine/runner.py": RUNNER.replace("import torch\n", "import torch\n\nfrom engine.bridge import stage_indices\n").replace(
            "self.state_indices[:num_reqs].copy_(batch.state_indices)", "stage_indices(self.state_indices, batch.state_indices, num_reqs)",
        ),
    }
    assert check(files).reported == [("GL201", "state_indices", "tl.store(out_ptr + lane, tl.load(source_ptr + lane))")]
    foreign = {**files, "engine/runner.py": files["engine/runner.py"].replace("engine.bridge", "elsewhere.bridge")}
    assert check(foreign).reported == [], "another package's function of that name"
    twice = {**files, "engine/more.py": KERNELS.replace("_stage_kernel", "_other_kernel")}
    assert check(twice).reported == [], "two functions of that name: it is not known which one is meant"


STORED = '''
import torch


class ForwardBatch:
    def __init__(self, positions):
        self.positions = positions


def _grouped_foreach_copy_(dsts, srcs):
    groups = {}
    for dst, src in zip(dsts, srcs):
        groups.setdefault(dst.dtype, ([], []))[0].append(dst)
        groups[dst.dtype][1].append(src)
    for group in groups.values():
        torch._foreach_copy_(*group)


class CudaGraphRunner:
    def __init__(self, model, max_num_token, device):
        self.model = model
        self.positions = torch.zeros(max_num_token, dtype=torch.int64, device=device)

    def capture_one_batch_size(self, bs):
        num_tokens = bs * self.num_tokens_per_bs
        batch = ForwardBatch(positions=self.positions[:num_tokens])

        def run_once():
            return self.model.forward(batch)

        return self._capture_graph(run_once)

    def replay_prepare(self, batch, raw_bs, bs):
        raw_num_token = raw_bs * self.num_tokens_per_bs
        self.positions[raw_num_token:].zero_()
        dsts = [self.positions[:raw_num_token]]
        _grouped_foreach_copy_(dsts, [batch.positions])
'''


def test_what_is_stored_for_a_captured_function_is_read_by_the_graph_and_a_grouped_copy_writes(check):
    path = "sglang/cuda_graph_runner.py"
    assert check({path: STORED}).reported == []
    broken = check({path: STORED.replace("        self.positions[raw_num_token:].zero_()\n", "")})
    assert broken.reported == [("GL301", "positions", "_grouped_foreach_copy_(dsts, [batch.positions])")]
    assert "the graph captured from `CudaGraphRunner.capture_one_batch_size` reads it" in broken.one()["message"]


PER_SIZE = '''
import torch


class Backend:
    def init_cuda_graph_state(self, max_bs, device):
        self.start_loc_list = []
        for rows in range(max_bs):
            self.start_loc_list.append(torch.zeros(rows + 2, dtype=torch.int32, device=device))

    def replay_metadata(self, bs, num_padding, query_start_loc):
        self.start_loc_list[bs - 1][: bs - num_padding].copy_(query_start_loc)
        self.start_loc_list[bs - 1][bs - num_padding :].fill_(bs - num_padding)
        return ForwardMetadata(self.start_loc_list[bs - 1])
'''


def test_a_storage_for_each_size_is_read_in_whole(check):
    path = "sglang/backend.py"
    assert check({path: PER_SIZE}).reported == []
    broken = PER_SIZE.replace("        self.start_loc_list[bs - 1][bs - num_padding :].fill_(bs - num_padding)\n", "")
    assert check({path: broken}).reported == [
        ("GL301", "start_loc_list", "self.start_loc_list[bs - 1][: bs - num_padding].copy_(query_start_loc)"),
    ]


QUOTED = '''
import torch


class InputBatch:
    num_tokens: int


class Runner:
    def __init__(self, config, device):
        self.positions = torch.zeros(config.max_num_tokens, dtype=torch.int32, device=device)

    def gather(self, output) -> tuple["InputBatch | None", int]:
        return self.sort(output)

    def execute_model(self, output, num_tokens_padded):
        batch, rest = self.gather(output)
        self.positions[: batch.num_tokens].copy_(output.positions)
        self.model(self.positions[:num_tokens_padded])
'''


def test_types_in_quotes_inside_an_annotation(check):
    """`num_tokens` may be live or padded; that of an `InputBatch` is live, and `tuple["InputBatch | None", int]` says that it is one."""
    stale = ("GL301", "positions", "self.positions[: batch.num_tokens].copy_(output.positions)")
    assert check({"vllm/runner.py": QUOTED}).reported == [stale]
    padded = QUOTED.replace("        self.model(", "        self.positions[batch.num_tokens :].fill_(0)\n        self.model(")
    assert check({"vllm/runner.py": padded}).reported == []


def test_a_step_that_only_a_dummy_batch_is_seen_to_run(check):
    """The dummy batch is padded from the start; real ones come from outside the tree."""
    dummy = "\n    def _dummy_run(self, batch, num_reqs_padded):\n        self.execute_model(batch, num_reqs_padded, num_reqs_padded)\n"
    assert check({"vllm/runner.py": RUNNER + dummy}).reported == [STALE]


MASK = '''
import torch


class Runner:
    def __init__(self, config, device):
        self.is_padding = torch.zeros(config.max_num_tokens, dtype=torch.bool, device=device)

    def padding_mask(self, num_tokens_unpadded, num_tokens_padded):
        mask = self.is_padding[:num_tokens_padded]
        mask[:num_tokens_unpadded].fill_(False)
        mask[num_tokens_unpadded:].fill_(True)
        return mask

    def _dummy_run(self, num_tokens_padded):
        return self.model(self.padding_mask(num_tokens_padded, num_tokens_padded))

    def execute_model(self, idle, num_tokens_unpadded, num_tokens_padded):
        if idle:
            self._dummy_run(num_tokens_padded)
        return self.model(self.padding_mask(num_tokens_unpadded, num_tokens_padded))
'''


def test_what_a_dummy_batch_fills_pads_no_real_one(check):
    assert check({"vllm/runner.py": MASK}).reported == []
    broken = MASK.replace("        mask[num_tokens_unpadded:].fill_(True)\n", "")
    assert check({"vllm/runner.py": broken}).reported == [("GL301", "is_padding", "mask[:num_tokens_unpadded].fill_(False)")]


HOOKS = '''
import torch


class ForwardBatch:
    out_cache_loc: torch.Tensor


class Metadata:
    swa_out_cache_loc: torch.Tensor


class Backend:
    def init_cuda_graph_state(self, max_num_tokens, device):
        self.swa_out_cache_loc = torch.zeros(max_num_tokens, dtype=torch.int64, device=device)

    def build_metadata(self, bs, num_tokens):
        metadata = Metadata()
        metadata.swa_out_cache_loc = self.swa_out_cache_loc[:num_tokens]
        return metadata

    def prepare(self, forward_batch: ForwardBatch, bs, in_capture=False):
        if in_capture:
            self.build_metadata(bs, forward_batch.positions.numel())
        self.write(forward_batch)

    def write(self, forward_batch: ForwardBatch):
        n = forward_batch.out_cache_loc.shape[0]
        self.swa_out_cache_loc[n:].zero_()
        self.swa_out_cache_loc[:n].copy_(self.translate(forward_batch.out_cache_loc))
'''


def test_what_is_put_in_place_only_while_a_graph_is_captured_is_read_by_it(check):
    path = "sglang/backend.py"
    assert check({path: HOOKS}).reported == []
    broken = HOOKS.replace("        self.swa_out_cache_loc[n:].zero_()\n", "")
    assert check({path: broken}).reported == [
        ("GL301", "swa_out_cache_loc", "self.swa_out_cache_loc[:n].copy_(self.translate(forward_batch.out_cache_loc))"),
    ]
    always = broken.replace("        if in_capture:\n            self.build", "        self.build")
    assert check({path: always}).reported == [], "what every step puts in place has the step's own count"
