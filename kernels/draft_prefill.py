"""Draft prefill inputs whose last-token rows are written for live requests only, feeding a gather under replay.

What it shows
    A speculative draft model starts each step from the target's tokens, shifted by one. One kernel prepares its inputs: shifted token ids,
    query offsets, sequence lengths, and for each request the row of its last token, with which hidden states are gathered for sampling.
    The draft's graph is captured for a padded request count, so the gather reads rows for padded requests too. In the faulty kernel the
    last program pads offsets and lengths and forgets the last-token rows: the padded lanes keep rows of an older, larger batch.

Why nobody notices
    A gather written in Triton reads whatever memory the stale row points at. torch's own indexing asserts on the device at replay, long
    after the step that left the value and with no Python frame near it. Both need a batch that shrinks across a capture size.

How it is made visible
    Hidden rows beyond this step's padded tokens are NaN; a padded lane that gathers NaN used a stale row. In a process of its own the same
    step goes through torch indexing: the process dies with the faulty kernel and ends well with the corrected one.

Faulty and corrected
    One flag, PAD_ROWS: with it the last program also stores row 0 for every lane from the live count to the capacity. Row 0 always exists.

Seen in the field: vllm-project/vllm#39773.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from graphlint.validate.bench import Bench

SCENARIO = {
    "name": "draft-prefill-gather",
    "title": "a captured gather uses last-token rows that an older batch left in the padding",
    "rules": ["GL201"],
    "faulty": "rows not padded",
    "corrected": "rows padded",
    "cuda_needs": [],
}

VARIANTS = {"rows not padded": False, "rows padded": True}
BLOCK = 16


@triton.jit
def draft_prefill_inputs(
    last_rows_ptr,
    draft_tokens_ptr,
    draft_offsets_ptr,
    draft_lens_ptr,
    tokens_ptr,
    next_tokens_ptr,
    offsets_ptr,
    lens_ptr,
    rejected_ptr,
    capacity,
    PAD_ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a live request: shift its tokens left by one, append the sampled token, note where its last token sits."""
    req = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    first = tl.load(offsets_ptr + req)
    end = tl.load(offsets_ptr + req + 1)
    last = end - tl.load(rejected_ptr + req) - 1
    for start in range(first, last, BLOCK):
        at = start + lane
        tl.store(draft_tokens_ptr + at, tl.load(tokens_ptr + at + 1, mask=at < last), mask=at < last)
    tl.store(draft_tokens_ptr + last, tl.load(next_tokens_ptr + req))
    tl.store(last_rows_ptr + req, last)
    tl.store(draft_offsets_ptr + req, first)
    tl.store(draft_lens_ptr + req, tl.load(lens_ptr + req))
    live = tl.num_programs(0)
    if req == live - 1:
        for start in range(live, capacity + 1, BLOCK):
            at = start + lane
            tl.store(draft_offsets_ptr + at, end, mask=at < capacity + 1)
            tl.store(draft_lens_ptr + at, 0, mask=at < capacity)
            if PAD_ROWS:
                tl.store(last_rows_ptr + at, 0, mask=at < capacity)


@triton.jit
def gather_rows(out_ptr, hidden_ptr, rows_ptr, WIDTH: tl.constexpr):
    """out[r] = hidden[rows[r]]; captured with one program a padded request."""
    req = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    row = tl.load(rows_ptr + req)
    tl.store(out_ptr + req * WIDTH + column, tl.load(hidden_ptr + row * WIDTH + column))


class Draft:
    """Persistent buffers of the draft model, and a step that fills them."""

    def __init__(self, bench: Bench, capacity: int, tokens: int) -> None:
        self.bench, self.capacity = bench, capacity
        new = lambda size, kind=torch.int32: torch.zeros(size, dtype=kind, device=bench.device)  # noqa: E731
        self.last_rows, self.tokens, self.offsets, self.lens = new(capacity, torch.int64), new(tokens), new(capacity + 1), new(capacity)

    def step(self, lengths: list[int], pad_rows: bool, extra: int) -> Any:
        """Runs the kernel for live requests of these query lengths; returns the last row of each as the oracle has it."""
        device, live = self.bench.device, len(lengths)
        generator = self.bench.generator(extra)
        offsets = torch.zeros(live + 1, dtype=torch.int32)
        offsets[1:] = torch.tensor(lengths).cumsum(0)
        rejected = torch.tensor([int(torch.randint(0, length, (1,), generator=generator)) for length in lengths], dtype=torch.int32)
        tokens = torch.randint(1, 1000, (int(offsets[-1]) + 1,), generator=generator, dtype=torch.int32)
        following = torch.randint(1, 1000, (live,), generator=generator, dtype=torch.int32)
        draft_prefill_inputs[(live,)](
            self.last_rows,
            self.tokens,
            self.offsets,
            self.lens,
            tokens.to(device),
            following.to(device),
            offsets.to(device),
            torch.tensor(lengths, dtype=torch.int32, device=device),
            rejected.to(device),
            self.capacity,
            PAD_ROWS=pad_rows,
            BLOCK=BLOCK,
        )
        return offsets[1:].long() - rejected.long() - 1


def schedules(bench: Bench) -> list[tuple[int, int, int, int, int]]:
    """(requests before, their length, live requests now, their length, padded requests)."""
    return [(12, 5, 3, 2, 4), (12, 5, 5, 1, 8), (BLOCK + 1, 4, 1, 1, 16), (7, 9, 6, 3, 8), (8, 3, 8, 3, 8)]


def run(bench: Bench) -> None:
    """Gather in Triton, captured at the padded request count and replayed after the batch shrank."""
    width = 8
    for before, before_len, live, length, padded in schedules(bench):
        capacity, rows = 24, before * before_len
        padded_tokens = padded * length
        for variant, pad_rows in VARIANTS.items():
            draft = Draft(bench, capacity, max(rows, padded_tokens) + 1)
            hidden = torch.randn(rows + padded_tokens, width, generator=bench.generator(before)).to(bench.device)
            out = torch.zeros(capacity, width, device=bench.device)
            replay = bench.capture(
                lambda out=out, hidden=hidden, draft=draft, padded=padded: gather_rows[(padded,)](out, hidden, draft.last_rows, WIDTH=width)
            )
            draft.step([before_len] * before, pad_rows, 1)
            expected_rows = draft.step([length] * live, pad_rows, 2)
            hidden[padded_tokens:] = float("nan")  # nothing of this step lives beyond its padded tokens
            out.fill_(-1.0)
            replay.replay()
            result, stored = out.cpu(), draft.last_rows.cpu()
            bad = [lane for lane in range(live, padded) if int(stored[lane]) >= padded_tokens or bool(result[lane].isnan().any())]
            exact = bool((result[:live] == hidden.cpu()[expected_rows]).all())
            text = (
                f"lanes {live}..{padded - 1} of last rows hold {stored[live:padded].tolist()}, the step has {padded_tokens} rows"
                if live < padded
                else "no padding"
            )
            bench.report(
                f"gather; {before}x{before_len} then {live}x{length} padded to {padded}",
                variant,
                live=live,
                padded=padded,
                unit="requests",
                bad=bad,
                values=[f"row {int(stored[lane])} -> {float(result[lane][0]):.3g}" for lane in bad],
                live_exact=exact,
                text=text,
                buffer="last_rows",
            )


def crash(bench: Bench, variant: str) -> None:
    """The same step through torch indexing over exactly the padded rows: a stale row is out of range and ends the process."""
    before, before_len, live, length, padded = schedules(bench)[0]
    padded_tokens = padded * length
    draft = Draft(bench, 24, before * before_len + 1)
    hidden = torch.randn(padded_tokens, 8, generator=bench.generator()).to(bench.device)
    out = torch.zeros(padded, 8, device=bench.device)
    replay = bench.capture(lambda: out.copy_(hidden[draft.last_rows[:padded]]))
    draft.step([before_len] * before, VARIANTS[variant], 1)
    expected = draft.step([length] * live, VARIANTS[variant], 2)
    replay.replay()
    if not bool((out[:live].cpu() == hidden.cpu()[expected]).all()):
        raise AssertionError("live lanes differ from the reference")


def memcheck(bench: Bench, variant: str) -> None:
    """The Triton gather over exactly the padded rows: nothing faults, and compute-sanitizer names kernel and line of the stale read."""
    before, before_len, live, length, padded = schedules(bench)[0]
    draft = Draft(bench, 24, before * before_len + 1)
    hidden = torch.randn(padded * length, 8, generator=bench.generator()).to(bench.device)
    out = torch.zeros(padded, 8, device=bench.device)
    draft.step([before_len] * before, VARIANTS[variant], 1)
    draft.step([length] * live, VARIANTS[variant], 2)
    if bench.device == "cuda":
        gather_rows[(padded,)](out, hidden, draft.last_rows, WIDTH=8)
        torch.cuda.synchronize()
