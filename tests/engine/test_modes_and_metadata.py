"""Graph modes and token counts followed across files, and kernels whose lanes end early."""

import pytest

MANAGER = """\
from vllm.config.compilation import CUDAGraphMode


class GraphManager:
    def __init__(self, config, cudagraph_mode: CUDAGraphMode, decode_query_len: int):
        self.cudagraph_mode = cudagraph_mode
"""
DRAFTER = """\
from engine.manager import GraphManager
from vllm.config.compilation import CUDAGraphMode


class DraftGraphManager(GraphManager):
    def capture(self):
        pass


class Drafter:
    def init_graphs(self, cudagraph_mode: CUDAGraphMode):
        {narrow}
        self.manager = DraftGraphManager(self.config, {mode}, decode_query_len={length})
"""
NARROWED = "cudagraph_mode = CUDAGraphMode.FULL_DECODE_ONLY if cudagraph_mode.decode_mode() == CUDAGraphMode.FULL else CUDAGraphMode.NONE"


def drafter(narrow="pass", mode="cudagraph_mode", length="1"):
    text = DRAFTER.format(narrow=narrow, mode=mode, length=length)
    return {"engine/__init__.py": "", "engine/manager.py": MANAGER, "engine/drafter.py": text}


@pytest.mark.parametrize(("arguments", "rules"), [
    pytest.param({}, ["GL501"], id="as-it-came"),
    pytest.param({"mode": "CUDAGraphMode.PIECEWISE"}, ["GL501"], id="literally-piecewise"),
    pytest.param({"mode": "CUDAGraphMode.FULL_AND_PIECEWISE"}, ["GL501"], id="one-half-is-piecewise"),
    pytest.param({"mode": "cudagraph_mode.mixed_mode()"}, ["GL501"], id="mode-of-mixed-batches"),
    pytest.param({"mode": "cudagraph_mode.decode_mode()"}, ["GL501"], id="decode-mode-of-piecewise-is-piecewise"),
    pytest.param({"mode": "CUDAGraphMode.FULL_AND_PIECEWISE.decode_mode()"}, [], id="decode-mode-of-both-is-full"),
    pytest.param({"narrow": NARROWED}, [], id="narrowed"),
    pytest.param({"mode": "CUDAGraphMode.FULL_DECODE_ONLY"}, [], id="full-decode-only"),
    pytest.param({"length": "1 + self.num_speculative_steps"}, [], id="several-tokens-a-request"),
    pytest.param({"length": "4"}, [], id="four-tokens-a-request"),
])
def test_the_modes_a_single_token_manager_may_get(check, arguments, rules):
    """The constructor is inherited from another file."""
    assert [finding.rule for finding in check(drafter(**arguments)).reported] == rules


def test_a_resolved_mode_overwritten_from_the_configuration(check):
    """The narrowing that follows is of the wrong mode, but the manager is safe: one finding."""
    raw = "cudagraph_mode = self.vllm_config.compilation_config.cudagraph_mode"
    outcome = check(drafter(narrow=f"{raw}\n        {NARROWED}"))
    assert outcome.reported == [("GL502", None, raw)]
    assert check(drafter(narrow=f"if cudagraph_mode is None:\n            {raw}\n        {NARROWED}")).reported == []


METADATA = """\
from engine.metadata import build_metadata
from vllm.config.compilation import CUDAGraphMode


class Runner:
    def execute(self, num_reqs, query_start_loc, batch_desc):
        {step}

    def _build(self, num_reqs, count, query_start_loc):
        return build_metadata(num_reqs, count, query_start_loc)
"""
BUILD = """\
from dataclasses import dataclass


@dataclass
class FlashAttentionMetadata:
    num_reqs: int
    num_actual_tokens: int


def build_metadata(num_reqs, num_tokens, query_start_loc):
    return FlashAttentionMetadata(num_reqs=num_reqs, num_actual_tokens=num_tokens)
"""


def runner(step):
    text = METADATA.format(step=step.replace("\n", "\n        "))
    return {"engine/__init__.py": "", "engine/metadata.py": BUILD, "engine/runner.py": text}


@pytest.mark.parametrize("step", [
    "return build_metadata(num_reqs, batch_desc.num_tokens, query_start_loc)",
    "count = batch_desc.num_tokens\nreturn self._build(num_reqs, count, query_start_loc)",
    "return self._build(num_reqs, query_start_loc=query_start_loc, count=batch_desc.num_tokens)",
    "if num_reqs > 1:\n    return build_metadata(num_reqs, batch_desc.num_tokens, query_start_loc)",
    "build = build_metadata\nreturn build(num_reqs, batch_desc.num_tokens, query_start_loc)",
])
def test_padded_tokens_reach_metadata_in_every_mode(check, step):
    """Reported where the count is decided, with the constructor in the trace."""
    outcome = check(runner(step))
    assert [finding.rule for finding in outcome.reported] == ["GL102"]
    assert "batch_desc.num_tokens" in outcome.reported[0].at or "count" in outcome.reported[0].at
    assert outcome.one()["path"] == "engine/runner.py"
    assert outcome.one()["trace"][-1]["path"] == "engine/metadata.py"


@pytest.mark.parametrize("step", [
    "return build_metadata(num_reqs, query_start_loc[-1], query_start_loc)",
    "full = batch_desc.cg_mode == CUDAGraphMode.FULL\nif full:\n    return self._build(num_reqs, batch_desc.num_tokens, query_start_loc)",
    "pad_attn = batch_desc.cg_mode == CUDAGraphMode.FULL\n"
    "return self._build(num_reqs, batch_desc.num_tokens if pad_attn else int(query_start_loc[-1]), query_start_loc)",
    "if batch_desc.cg_mode != CUDAGraphMode.FULL:\n    return None\nreturn self._build(num_reqs, batch_desc.num_tokens, query_start_loc)",
])
def test_padded_tokens_under_full_only_are_legal(check, step):
    assert check(runner(step)).reported == []


EXIT = """\
import torch
import triton
import triton.language as tl


@triton.jit
def window_kernel(lens_ptr, indices_ptr, seq_lens_ptr, table_ptr, stride, num_reqs, BLOCK: tl.constexpr):
    req = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    length = tl.load(seq_lens_ptr + req)
    {body}


class Builder:
    def __init__(self, config, device):
        self.window_lens = torch.zeros(config.max_num_seqs, dtype=torch.int32, device=device)
        self.window_indices = torch.zeros(config.max_num_seqs, 64, dtype=torch.int32, device=device)

    def build(self, num_reqs_padded, num_reqs, seq_lens, table):
        window_kernel[(num_reqs_padded,)]({outputs}, seq_lens, table, 64, num_reqs, BLOCK=64)
"""
STORE = "tl.store(indices_ptr + req * stride + lanes, tl.load(table_ptr + lanes), mask=lanes < stride)"
SENTINEL = "tl.store(indices_ptr + req * stride + lanes, -1, mask=lanes < stride)"
KEPT = "self.window_lens, self.window_indices"


def kernel(body, outputs=KEPT):
    return {"builder.py": EXIT.format(body=body.replace("\n", "\n    "), outputs=outputs)}


@pytest.mark.parametrize(("body", "buffers"), [
    pytest.param(f"tl.store(lens_ptr + req, length)\nif length == 0:\n    return\n{STORE}", ["indices_ptr"], id="lane-ends-early"),
    pytest.param(f"if length == 0:\n    return\ntl.store(lens_ptr + req, length)\n{STORE}", [], id="lane-skipped-whole"),
    pytest.param(f"tl.store(lens_ptr + req, length)\nif req >= num_reqs:\n    return\n{STORE}", [], id="decided-by-the-program-alone"),
    pytest.param(
        f"tl.store(lens_ptr + req, length)\nif length == 0:\n    {SENTINEL}\n    return\n{STORE}", [], id="sentinel-before-the-return",
    ),
])
def test_a_lane_that_ends_with_some_outputs_stored(check, body, buffers):
    found = [finding for finding in check(kernel(body)).reported if finding.rule == "GL203"]
    assert [finding.buffer for finding in found] == buffers
    assert {finding.at for finding in found} <= {"return"}


@pytest.mark.xfail(strict=True, reason="only returns end a lane early, not a store under a test of the lane's data")
def test_a_store_under_a_test_leaves_the_lane_as_an_early_return_does(check):
    found = check(kernel(f"tl.store(lens_ptr + req, length)\nif length > 0:\n    {STORE}")).reported
    assert [(finding.rule, finding.buffer) for finding in found] == [("GL203", "indices_ptr")]


def test_outputs_made_anew_in_each_step_cannot_be_stale(check):
    body = f"tl.store(lens_ptr + req, length)\nif length == 0:\n    return\n{STORE}"
    fresh = "torch.zeros_like(seq_lens), torch.zeros_like(table)"
    assert [finding for finding in check(kernel(body, fresh)).reported if finding.rule == "GL203"] == []
