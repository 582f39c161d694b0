"""A kernel writes a persistent buffer for live lanes only, while a padded or captured reader sees more.

## What it does
Follows every persistent buffer that is handed to a Triton kernel. The kernel's stores cover an interval of lanes, in terms of its grid and
its arguments. If that interval ends at the live count, some later reader of the same buffer sees lanes up to a padded count or the
capacity, and nothing fills the lanes between (the kernel itself, another kernel, or host code in the same step), it is reported.

## Why it fails under graphs
A captured graph reads as many lanes as it was captured with. The lanes past the live count keep what an older, larger batch left there:
as a gather index it points outside the padded activations, as a slot it overwrites live KV cache, as a length it makes attention read
freed pages.

## Known problems
A reader that returns early on lanes marked by another buffer (a zero length, a null state) is not recognised as safe. Kernels whose index
arithmetic is not understood lower the confidence.

## Example
    @triton.jit
    def prepare(last_ptr, start_ptr):
        i = tl.program_id(0)
        tl.store(last_ptr + i, tl.load(start_ptr + i + 1) - 1)
    ...
    prepare[(num_reqs,)](self.last_token_indices, query_start_loc)

## Use instead
    @triton.jit
    def prepare(last_ptr, start_ptr, max_num_reqs, BLOCK: tl.constexpr):
        i = tl.program_id(0)
        tl.store(last_ptr + i, tl.load(start_ptr + i + 1) - 1)
        n = tl.num_programs(0)
        if i == n - 1:
            for j in range(n, max_num_reqs, BLOCK):
                lanes = j + tl.arange(0, BLOCK)
                tl.store(last_ptr + lanes, 0, mask=lanes < max_num_reqs)

## Fix safety
Padding stores to lanes that no live request owns cannot change live lanes.

## How it is confirmed
The kernel runs over poisoned outputs with the schedule of the witness; lanes that a padded reader would read and that still hold poison
confirm the finding.

## References
vllm-project/vllm#39773 (`last_token_indices`), vllm-project/vllm compare v0.32.0...v0.33.0 (block tables), sgl-project/sglang#22958.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

from graphlint.api import (
    BUFFER_TOKENS,
    Example,
    Finding,
    Project,
    Rule,
    make_finding,
    place,
    severity_of,
    stale_confidence,
    stale_trace,
    stale_witness,
    symbol_of,
    who_reads,
)


def check(project: Project) -> Iterator[Finding]:
    """Stale tails whose writer is a kernel and whose tail nobody even tries to fill."""
    for stale in project.stale_tails:
        write = stale.write
        if write.effect.kernel is None or stale.late_fills:
            continue
        buffer = write.buffer
        padded = f"; the kernel does pad {', '.join(f'`{name}`' for name in stale.siblings[:3])}" if stale.siblings else ""
        yield make_finding(
            rule=RULE.id,
            name=RULE.name,
            severity=severity_of(buffer),
            confidence=stale_confidence(stale),
            site=place(write.effect),
            buffer=buffer.name,
            trace=stale_trace(stale),
            witness=stale_witness(stale),
            message=(
                f"`{symbol_of(place(write.effect))}` writes `{buffer.name}` ({buffer.meaning}) for {write.hi} only, but {who_reads(stale)}, "
                f"and nothing fills the lanes between{padded}"
            ),
        )


_ENGINE = """
    import torch
    import triton
    import triton.language as tl

    class Drafter:
        def __init__(self, config, device):
            self.max_num_reqs = config.max_num_seqs
            self.last_token_indices = torch.zeros(self.max_num_reqs, dtype=torch.int64, device=device)
            self.hidden = torch.zeros(config.max_num_batched_tokens, 64, device=device)

        def capture(self):
            self.manager.capture(self.forward)

        def forward(self, num_reqs, num_tokens):
            last = self.last_token_indices[:num_reqs]
            return self.head(self.hidden[last])

        def propose(self, num_reqs, query_start_loc, desc):
            {launch}
            self.manager.replay(desc)

    {kernel}
"""


def _engine(launch: str, kernel: str) -> str:
    text = dedent(_ENGINE)
    return text.format(launch=launch.replace("\n", "\n        "), kernel=dedent(kernel))


_LIVE_ONLY = """
@triton.jit
def prepare(last_ptr, start_ptr):
    i = tl.program_id(0)
    tl.store(last_ptr + i, tl.load(start_ptr + i + 1) - 1)
"""

_PADDED_GRID = """
@triton.jit
def prepare(last_ptr, start_ptr, num_reqs):
    i = tl.program_id(0)
    if i >= num_reqs:
        {pad}
        return
    tl.store(last_ptr + i, tl.load(start_ptr + i + 1) - 1)
"""

_EXTRA_PROGRAM = """
@triton.jit
def prepare(last_ptr, start_ptr, max_num_reqs, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    n = tl.num_programs(0) - 1
    if i == n:
        for j in range(n, max_num_reqs, BLOCK):
            lanes = j + tl.arange(0, BLOCK)
            {pad}
        return
    tl.store(last_ptr + i, tl.load(start_ptr + i + 1) - 1)
"""

RULE = Rule(
    id="GL201",
    name="unpadded-request-buffer",
    summary="a kernel writes a persistent buffer for live lanes only while a padded or captured reader sees more",
    severity="error",
    since="0.1.0",
    tokens=BUFFER_TOKENS,
    check=check,
    references=("vllm-project/vllm#39773", "sgl-project/sglang#22958"),
    bad=(
        Example(
            "grid of live requests",
            _engine("prepare[(num_reqs,)](self.last_token_indices, query_start_loc)", _LIVE_ONLY),
            ("last_token_indices",),
        ),
        Example(
            "padded grid that returns without a store",
            _engine("prepare[(desc.num_reqs,)](self.last_token_indices, query_start_loc, num_reqs)", _PADDED_GRID.format(pad="pass")),
            ("last_token_indices",),
        ),
        Example(
            "extra program whose loop stores nothing",
            _engine(
                "prepare[(num_reqs + 1,)](self.last_token_indices, query_start_loc, self.max_num_reqs, BLOCK=128)",
                _EXTRA_PROGRAM.format(pad="pass"),
            ),
            ("last_token_indices",),
        ),
    ),
    good=(
        Example(
            "padded grid that stores the pad value",
            _engine(
                "prepare[(desc.num_reqs,)](self.last_token_indices, query_start_loc, num_reqs)",
                _PADDED_GRID.format(pad="tl.store(last_ptr + i, 0)"),
            ),
        ),
        Example(
            "extra program pads",
            _engine(
                "prepare[(num_reqs + 1,)](self.last_token_indices, query_start_loc, self.max_num_reqs, BLOCK=128)",
                _EXTRA_PROGRAM.format(pad="tl.store(last_ptr + lanes, 0, mask=lanes < max_num_reqs)"),
            ),
        ),
        Example(
            "near miss: the host fills the tail before replay",
            _engine(
                "prepare[(num_reqs,)](self.last_token_indices, query_start_loc)\nself.last_token_indices[num_reqs:].fill_(0)", _LIVE_ONLY
            ),
        ),
        Example(
            "whole buffer cleared before the launch",
            _engine("self.last_token_indices.zero_()\nprepare[(num_reqs,)](self.last_token_indices, query_start_loc)", _LIVE_ONLY),
        ),
    ),
)
