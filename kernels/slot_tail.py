"""Slot mappings whose tail fill starts at the padded token count: padded rows write over live KV.

What it shows
    Before attention each token's key and value are written to a slot of the KV cache. Slots of padded tokens must hold the pad id (-1),
    which the writer skips. The faulty kernel knows only the padded token count and starts its fill there; lanes between the live and the
    padded count keep slots of the step before, which are valid, and may still belong to a request that is running. The captured writer then
    stores the padded rows' keys and values over that request's context.

Why nobody notices
    Nothing faults and this step's own rows are right. A later step attends to the damaged slots; the text drifts, hours after the cause.

How it is made visible
    Padded rows carry NaN. After the replay the whole KV cache is compared, bit for bit, with one that only live tokens wrote.

Faulty and corrected
    `slot_mapping` takes the first lane of the fill from its argument; TAIL_FROM_OFFSETS reads offsets[live], the true token count.

Seen in the field: vllm-project/vllm#36580 (chunked prefill, then a short padded step).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from graphlint.validate.bench import Bench

SCENARIO = {
    "name": "slot-tail-overwrites-kv",
    "title": "the slot fill starts at the padded count; replayed padding rows overwrite live KV",
    "rules": ["GL202", "GL301"],
    "faulty": "tail from padded count",
    "corrected": "tail from offsets",
    "cuda_needs": [],
}

VARIANTS = {"tail from padded count": False, "tail from offsets": True}
BLOCK, WIDTH = 16, 4


@triton.jit
def slot_mapping(
    slots_ptr,
    offsets_ptr,
    positions_ptr,
    table_ptr,
    table_stride,
    padded_tokens,
    capacity,
    PAGE: tl.constexpr,
    TAIL_FROM_OFFSETS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One program a request, and one more that fills the tail: slot = page of the position * PAGE + place in the page, or -1."""
    req = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    if req == tl.num_programs(0) - 1:
        first = padded_tokens
        if TAIL_FROM_OFFSETS:
            first = tl.load(offsets_ptr + req)
        for start in range(first, capacity, BLOCK):
            tl.store(slots_ptr + start + lane, -1, mask=start + lane < capacity)
    else:
        end = tl.load(offsets_ptr + req + 1)
        for start in range(tl.load(offsets_ptr + req), end, BLOCK):
            token = start + lane
            position = tl.load(positions_ptr + token, mask=token < end, other=0)
            page = tl.load(table_ptr + req * table_stride + position // PAGE, mask=token < end, other=0)
            tl.store(slots_ptr + token, page * PAGE + position % PAGE, mask=token < end)


@triton.jit
def write_kv(cache_ptr, rows_ptr, slots_ptr, WIDTH: tl.constexpr):
    """cache[slots[t]] = rows[t] for every token whose slot is not the pad id; captured with one program a padded token."""
    token = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    slot = tl.load(slots_ptr + token)
    if slot >= 0:
        tl.store(cache_ptr + slot * WIDTH + column, tl.load(rows_ptr + token * WIDTH + column))


def one_schedule(bench: Bench, page: int, first: list[int], second: list[int], padded: int) -> None:
    """A step of prompt chunks of `first` tokens, then one of `second` tokens (decode) padded to `padded` tokens."""
    device, live, before = bench.device, sum(second), sum(first)
    capacity = 64
    pages_each = triton.cdiv(max(first) + max(second), page)
    slots_total = len(first) * pages_each * page
    name = f"page {page}, chunks {'+'.join(map(str, first))}, then {live} tokens padded to {padded}"
    for variant, from_offsets in VARIANTS.items():
        table = torch.randperm(len(first) * pages_each, generator=bench.generator(page)).int().view(len(first), pages_each)
        cache = torch.zeros(slots_total, WIDTH, device=device)
        rows = torch.zeros(capacity, WIDTH, device=device)
        slots = torch.full((capacity,), -1, dtype=torch.int64, device=device)
        expected = torch.zeros(slots_total, WIDTH)
        graphs = {
            size: bench.capture(lambda size=size, cache=cache, rows=rows, slots=slots: write_kv[(size,)](cache, rows, slots, WIDTH=WIDTH))
            for size in sorted({before, padded})
        }
        done = [0] * len(first)
        for number, (lengths, size) in enumerate(((first, before), (second, padded))):
            count = sum(lengths)
            offsets = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0).int()
            positions = torch.cat([torch.arange(start, start + length) for start, length in zip(done, lengths, strict=False)]).int()
            slot_mapping[(len(lengths) + 1,)](
                slots,
                offsets.to(device),
                positions.to(device),
                table.to(device),
                table.stride(0),
                size,
                capacity,
                PAGE=page,
                TAIL_FROM_OFFSETS=from_offsets,
                BLOCK=BLOCK,
            )
            values = torch.randn(count, WIDTH, generator=bench.generator(number))
            rows.fill_(float("nan"))
            rows[:count] = values.to(device)
            graphs[size].replay()
            owner = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
            own_slots = table[owner, (positions // page).long()].long() * page + positions.long() % page
            expected[own_slots] = values
            done = [start + length for start, length in zip(done, lengths, strict=False)]
        stored, result = slots.cpu(), cache.cpu()
        damaged = [slot for slot in range(slots_total) if not torch.equal(result[slot], expected[slot])]
        bad = [lane for lane in range(live, padded) if int(stored[lane]) != -1]
        mine = own_slots.tolist()
        live_exact = torch.equal(result[mine], expected[mine])
        text = f"lanes {live}..{padded - 1} of the slots hold {stored[live:padded].tolist()}; {len(damaged)} live KV slots overwritten"
        bench.report(
            name,
            variant,
            live=live,
            padded=padded,
            unit="tokens",
            bad=bad if damaged else [],
            values=[f"slot {slot}" for slot in damaged],
            live_exact=live_exact,
            text=text,
            buffer="slots",
        )


def run(bench: Bench) -> None:
    """Several page sizes and shrinking batches; the last schedule needs no padding and must show no fault with either kernel."""
    for page in (1, 4, 16):
        one_schedule(bench, page, [10], [1], 8)
        one_schedule(bench, page, [9, 14, 3], [1, 1, 1], 4)
        one_schedule(bench, page, [BLOCK + 1, 7], [1, 1], 16)
        one_schedule(bench, page, [5, 5, 5, 5], [1, 1, 1, 1], 4)
