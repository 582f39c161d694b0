"""The tail fill of a buffer starts at a padded count, so the lanes between the live and the padded count stay stale.

## What it does
Compares, for one buffer and one step, the end of what is written for live lanes with the start of what is filled behind it. Both exist,
but the fill begins at a padded count (or the capacity) while the write ends at the live one: the lanes between keep the values of an
older step.

## Why it fails under graphs
The fill looks right in every eager run, where padded and live counts agree. Under a graph the count handed to the filling code is the
padded one. In a slot mapping the stale lanes are valid slots: padded rows then write their garbage keys and values over live KV cache.

## Known problems
Counts whose state is not known (an argument of a function that nothing in the checkout calls) are not judged.

## Example
    for i in range(num_tokens_padded, max_num_tokens, BLOCK):      # main loop ended at query_start_loc[num_reqs]
        lanes = i + tl.arange(0, BLOCK)
        tl.store(slots_ptr + lanes, PAD_ID, mask=lanes < max_num_tokens)

## Use instead
    start = tl.load(query_start_loc_ptr + num_reqs)                # the live token count
    for i in range(start, max_num_tokens, BLOCK):
        lanes = i + tl.arange(0, BLOCK)
        tl.store(slots_ptr + lanes, PAD_ID, mask=lanes < max_num_tokens)

## Fix safety
Starting the fill earlier touches only lanes that no live request or token owns.

## How it is confirmed
The kernel runs with a live count below the padded one over a buffer that holds an older step's values.

## References
vllm-project/vllm#36580 (`_compute_slot_mappings_kernel`).
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent, indent

from graphlint.api import (
    BUFFER_TOKENS,
    Example,
    Finding,
    Project,
    Rule,
    make_finding,
    place,
    severity_of,
    show,
    stale_confidence,
    stale_trace,
    stale_witness,
)


def check(project: Project) -> Iterator[Finding]:
    """Stale tails that somebody does fill, but from too far behind."""
    for stale in project.stale_tails:
        if not stale.late_fills:
            continue
        fill, write = stale.late_fills[0], stale.write
        start = show(fill.lo_expr) if fill.lo_expr is not None else "?"
        end = show(write.hi_expr) if write.hi_expr is not None else "?"
        yield make_finding(
            rule=RULE.id,
            name=RULE.name,
            severity=severity_of(write.buffer),
            confidence=stale_confidence(stale),
            site=place(fill.effect),
            buffer=write.buffer.name,
            trace=stale_trace(stale),
            witness=stale_witness(stale),
            message=(
                f"the fill of `{write.buffer.name}` ({write.buffer.meaning}) starts at `{start}` ({fill.lo}), but what is written before it ends at "
                f"`{end}` ({write.hi}): the lanes between keep an older step's values"
            ),
        )


def _tables(main: str, pad: str, call: str = "self.compute(query_start_loc, positions, batch_desc.num_tokens)") -> str:
    text = """
    import torch
    import triton
    import triton.language as tl

    class BlockTables:
        def __init__(self, max_num_batched_tokens, device):
            self.max_num_batched_tokens = max_num_batched_tokens
            self.slot_mapping = torch.zeros(max_num_batched_tokens, dtype=torch.int64, device=device)

        def compute(self, query_start_loc, positions, num_tokens_padded):
            num_reqs = query_start_loc.shape[0] - 1
            slots_kernel[(num_reqs + 1,)](
                self.slot_mapping, query_start_loc, positions, num_tokens_padded, self.max_num_batched_tokens, PAD_ID=-1, BLOCK=1024)
            return self.slot_mapping[:num_tokens_padded]

        def step(self, query_start_loc, positions, batch_desc):
            slots = {call}
            self.model(slots)

    @triton.jit
    def slots_kernel(slots_ptr, query_start_loc_ptr, positions_ptr, num_tokens, max_num_tokens, PAD_ID: tl.constexpr, BLOCK: tl.constexpr):
        i = tl.program_id(0)
        if i == tl.num_programs(0) - 1:
            {pad}
            return
        start = tl.load(query_start_loc_ptr + i)
        end = tl.load(query_start_loc_ptr + i + 1)
        for j in range(start, end, BLOCK):
            lanes = j + tl.arange(0, BLOCK)
            {main}
    """
    return dedent(text).format(main=main, pad=indent(dedent(pad), " " * 8).strip(), call=call)


_MAIN = "tl.store(slots_ptr + lanes, tl.load(positions_ptr + lanes, mask=lanes < end), mask=lanes < end)"
_PAD = """
for j in range({start}, {stop}, BLOCK):
    lanes = j + tl.arange(0, BLOCK)
    tl.store(slots_ptr + lanes, PAD_ID, mask=lanes < {stop})
"""
_LIVE = "live = tl.load(query_start_loc_ptr + i)\n" + _PAD.format(start="live", stop="max_num_tokens").strip()


def _host(fill: str) -> str:
    text = """
    import torch

    class Runner:
        def __init__(self, config):
            self.positions = torch.zeros(config.max_num_batched_tokens, dtype=torch.int64)

        def execute(self, positions, total_num_scheduled_tokens, num_tokens_padded):
            self.positions[:total_num_scheduled_tokens].copy_(positions)
            {fill}
            return self.model(self.positions[:num_tokens_padded])
    """
    return dedent(text).format(fill=fill)


RULE = Rule(
    id="GL202",
    name="tail-starts-at-padded-count",
    summary="the tail fill starts at a padded bound, so lanes between live and padded stay stale",
    severity="error",
    since="0.1.0",
    tokens=BUFFER_TOKENS,
    check=check,
    references=("vllm-project/vllm#36580",),
    bad=(
        Example(
            "pad loop from the padded argument", _tables(_MAIN, _PAD.format(start="num_tokens", stop="max_num_tokens")), ("slot_mapping",)
        ),
        Example("host fill from the padded count", _host("self.positions[num_tokens_padded:].fill_(0)"), ("positions",)),
        Example(
            "padded count computed by a helper",
            _host("self.positions[self.pad_for_cudagraph(total_num_scheduled_tokens):].fill_(0)"),
            ("positions",),
        ),
    ),
    good=(
        Example("pad loop from the live count on the device", _tables(_MAIN, _LIVE)),
        Example("host fill from the live count", _host("self.positions[total_num_scheduled_tokens:].fill_(0)")),
        Example("host fill of the gap only", _host("self.positions[total_num_scheduled_tokens:num_tokens_padded].fill_(0)")),
    ),
)
