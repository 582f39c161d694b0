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
    twice = {**files, "engine/more.py": KERNELS.replace("_stage_kernel", "_other_kernel")}
    assert check(twice).reported == [], "two functions of that name: it is not known which one is meant"
