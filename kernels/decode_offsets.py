"""Decode planned for padded tokens over page offsets that were written for live requests.

What it shows
    A decode step of 3 live requests runs padded to 8 tokens. The page offsets (`indptr`, one entry a request plus one) live in a persistent
    buffer; their kernel writes entries 0..3 and leaves the rest as the last, larger batch left them. The attention plan takes the padded
    token count for a request count, so rows 3..7 get page ranges made of stale offsets and read pages that belong to nobody in this step.

Why nobody notices
    Nothing faults. Every stale offset lies inside the page-id buffer and every stale page id inside the KV cache; the rows are padding and
    their output is dropped, until a page was freed and holds NaN, or the row is mixed with live ones (quantisation scales, expert routing,
    reductions), or the pages have been handed to another engine process.

How it is made visible
    Pages that only stale entries can reach are filled with NaN. Rows of the padding must come out as 0 (no pages); NaN there is the fault.
    Live rows are compared with a float64 reference that never sees the offsets buffer.

Faulty and corrected
    `page_offsets_live_only` stores what it has; `page_offsets_padded` also lets the last program repeat the last offset up to the capacity,
    so a padded request owns no pages. The corrected kernel costs one masked store loop in one program.

Consumers
    CPU: the float64 paged decode of this file, driven by the offsets buffer just as the kernel is. CUDA: FlashInfer's
    BatchDecodeWithPagedKVCacheWrapper, planned eagerly, with use_cuda_graph=True, and captured and replayed.

Seen in the field: vllm-project/vllm#39773 (draft decodes under PIECEWISE pad tokens, not requests).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from graphlint.validate.bench import Bench

SCENARIO = {
    "name": "stale-decode-offsets",
    "title": "decode planned by padded tokens reads page offsets of an older, larger batch",
    "rules": ["GL101", "GL102", "GL501", "GL201"],
    "faulty": "live-only offsets",
    "corrected": "padded offsets",
    "cuda_needs": ["flashinfer"],
}

PAGES_BEFORE, PAGES_NOW = 4, 1


@triton.jit
def page_offsets_live_only(offsets_ptr, page_counts_ptr, capacity, BLOCK: tl.constexpr):
    """offsets[r] = pages of requests before r, one program a live request; the last one also closes the list."""
    req = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    before = tl.sum(tl.load(page_counts_ptr + lane, mask=lane < req, other=0))
    tl.store(offsets_ptr + req, before)
    if req == tl.num_programs(0) - 1:
        tl.store(offsets_ptr + req + 1, before + tl.load(page_counts_ptr + req))


@triton.jit
def page_offsets_padded(offsets_ptr, page_counts_ptr, capacity, BLOCK: tl.constexpr):
    """As `page_offsets_live_only`, and the last program repeats the total up to offsets[capacity]: padded requests own no pages."""
    req = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    before = tl.sum(tl.load(page_counts_ptr + lane, mask=lane < req, other=0))
    tl.store(offsets_ptr + req, before)
    if req == tl.num_programs(0) - 1:
        total = before + tl.load(page_counts_ptr + req)
        for start in range(req + 1, capacity + 1, BLOCK):
            tail = start + lane
            tl.store(offsets_ptr + tail, total, mask=tail < capacity + 1)


VARIANTS = {"live-only offsets": page_offsets_live_only, "padded offsets": page_offsets_padded}


def paged_decode(query: Any, pages: Any, offsets: Any, page_ids: Any, last_page_len: Any) -> Any:
    """Decode attention in float64 over page ranges, as FlashInfer defines it.

    query [rows, q heads, head dim]; pages [page, 2 (k, v), page size, kv heads, head dim]; offsets [rows + 1] into page_ids;
    last_page_len [rows] tokens in each row's last page. A row without pages gives 0.
    """
    rows, heads, dim = query.shape
    out = torch.zeros(rows, heads, dim, dtype=torch.float64)
    for row in range(rows):
        first, end = int(offsets[row]), int(offsets[row + 1])
        if end <= first:
            continue
        tokens = pages[page_ids[first:end].long()].double()
        _, _, page_size, kv_heads, _ = tokens.shape
        length = (end - first - 1) * page_size + int(last_page_len[row])
        key, value = (tokens[:, half].reshape(-1, kv_heads, dim)[:length].repeat_interleave(heads // kv_heads, 1) for half in (0, 1))
        weights = torch.softmax(torch.einsum("hd,thd->ht", query[row].double(), key) / dim**0.5, -1)
        out[row] = torch.einsum("ht,thd->hd", weights, value)
    return out


class Case:
    """One schedule: `before` requests of 4 pages, then `live` requests of 1 page in a graph captured for `padded` tokens."""

    def __init__(self, bench: Bench, page_size: int, heads: tuple[int, int], dim: int, before: int, live: int, padded: int) -> None:
        self.bench, self.page_size, self.heads, self.dim, self.padded = bench, page_size, heads, dim, padded
        self.before, self.live, self.capacity = before, live, max(before, padded) + 4
        self.name = f"page {page_size}, heads {heads[0]}/{heads[1]}x{dim}, {self.before} then {self.live} requests padded to {padded}"
        generator = bench.generator(page_size * padded + heads[0] + dim)
        dtype = torch.float16 if bench.device == "cuda" else torch.float32
        used = self.before * PAGES_BEFORE
        order = torch.randperm(used + self.live, generator=generator)
        #: pages of the older batch, freed since then, and pages of the requests that run now
        self.old_pages, self.new_pages = order[:used].int(), order[used:].int()
        values = torch.randn(used + self.live, 2, page_size, heads[1], dim, generator=generator)
        values[self.old_pages.long()] = float("nan")
        self.pages = values.to(dtype)
        self.query = torch.randn(padded, heads[0], dim, generator=generator).to(dtype)
        self.last_page_len = torch.randint(1, page_size + 1, (self.capacity,), generator=generator).int()

    def reference(self) -> Any:
        """Live rows from the requests' own pages in float64."""
        lengths = self.last_page_len[: self.live]
        return paged_decode(self.query[: self.live], self.pages, torch.arange(self.live + 1), self.new_pages, lengths)

    def metadata(self, kernel: Any) -> tuple[Any, Any]:
        """Persistent offsets and page ids after both steps."""
        device = self.bench.device
        offsets = torch.zeros(self.capacity + 1, dtype=torch.int32, device=device)
        page_ids = torch.zeros(self.before * PAGES_BEFORE, dtype=torch.int32, device=device)
        block = triton.next_power_of_2(self.capacity + 1)
        for count, pages, ids in ((self.before, PAGES_BEFORE, self.old_pages), (self.live, PAGES_NOW, self.new_pages)):
            counts = torch.full((self.capacity,), pages, dtype=torch.int32, device=device)
            kernel[(count,)](offsets, counts, self.capacity, BLOCK=block)
            page_ids[: len(ids)] = ids.to(device)
        return offsets[: self.padded + 1], page_ids

    def judge(self, mode: str, variant: str, out: Any, expected: Any, tolerance: float) -> None:
        """Padded rows must be 0; live rows must equal the reference."""
        out = out.double().cpu()
        padding = out[self.live :].flatten(1)
        bad = [self.live + row for row, values in enumerate(padding) if bool((values != 0).any())]
        nan = sum(bool(padding[lane - self.live].isnan().any()) for lane in bad)
        error = float((out[: self.live] - expected).abs().max())
        text = (
            f"rows {self.live}..{self.padded - 1}: "
            + (f"{len(bad)} not zero, {nan} of them NaN" if bad else "zero")
            + f"; live rows off by {error:.1e}"
        )
        self.bench.report(
            f"{mode}; {self.name}",
            variant,
            live=self.live,
            padded=self.padded,
            unit="requests",
            bad=bad,
            buffer="page offsets",
            values=[f"{float(padding[lane - self.live][0]):.3g}" for lane in bad],
            live_exact=error <= tolerance,
            text=text,
        )


def with_reference(case: Case, variant: str, kernel: Any) -> None:
    """CPU: the float64 decode reads the offsets buffer for all padded rows; replayed like a graph."""
    offsets, page_ids = case.metadata(kernel)
    out = torch.zeros(case.padded, *case.query.shape[1:], dtype=torch.float64)
    replay = case.bench.capture(lambda: out.copy_(paged_decode(case.query, case.pages, offsets, page_ids, case.last_page_len)))
    out.zero_()
    replay.replay()
    case.judge("float64 decode", variant, out, case.reference(), 1e-9)


def with_flashinfer(case: Case, variant: str, kernel: Any, modes: tuple[str, ...]) -> None:
    """CUDA: the same metadata through FlashInfer, eager, with persistent buffers, and captured and replayed."""
    import flashinfer

    bench, padded = case.bench, case.padded
    pages, query, last = case.pages.cuda(), case.query.cuda(), case.last_page_len[:padded].cuda()
    workspace = torch.zeros(64 << 20, dtype=torch.uint8, device="cuda")
    expected = case.reference()
    for mode in modes:
        offsets, page_ids = case.metadata(kernel)
        buffers = {}
        if mode != "eager":
            buffers = {
                "paged_kv_indptr_buffer": torch.zeros(padded + 1, dtype=torch.int32, device="cuda"),
                "paged_kv_indices_buffer": torch.zeros_like(page_ids),
                "paged_kv_last_page_len_buffer": torch.ones(padded, dtype=torch.int32, device="cuda"),
            }
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD", use_cuda_graph=mode != "eager", **buffers)

        def plan(offsets: Any, wrapper: Any = wrapper, page_ids: Any = page_ids) -> None:
            wrapper.plan(
                offsets,
                page_ids,
                last,
                case.heads[0],
                case.heads[1],
                case.dim,
                case.page_size,
                q_data_type=torch.float16,
                kv_data_type=torch.float16,
            )

        out = torch.full_like(query, 7.0)
        if mode == "replayed":
            # captured for a full batch of padded requests, as a dummy run does
            bench.timed("flashinfer plan", lambda plan=plan: plan(torch.arange(padded + 1, dtype=torch.int32, device="cuda")))
            replay = bench.capture(lambda wrapper=wrapper, out=out: wrapper.run(query, pages, out=out))
            plan(offsets)
            out.fill_(7.0)
            replay.replay()
        else:
            bench.timed("flashinfer plan", lambda plan=plan, offsets=offsets: plan(offsets))
            wrapper.run(query, pages, out=out)
        torch.cuda.synchronize()
        case.judge(f"FlashInfer {mode}", variant, out, expected, 5e-3)


def run(bench: Bench) -> None:
    """All page sizes, head layouts and capture sizes, both variants."""
    page_sizes, heads = (1, 16, 32), ((8, 8, 64), (8, 2, 128), (16, 2, 128))
    sizes = [tuple(bench.extents)] if bench.extents else [(padded + 4, max(1, padded // 2 - 1), padded) for padded in (4, 8, 16)]
    dims = list(itertools.product(page_sizes, heads, sizes))
    if bench.quick or bench.device == "cpu":
        # each value of each dimension at least twice (a Latin square)
        dims = [(page, heads[(i + j) % 3], size) for i, page in enumerate(page_sizes) for j, size in enumerate(sizes)]
    for page_size, (q_heads, kv_heads, dim), size in dims:
        if bench.device == "cpu":
            dim //= 8
        case = Case(bench, page_size, (q_heads, kv_heads), dim, *size)
        for variant, kernel in VARIANTS.items():
            if bench.device == "cpu":
                with_reference(case, variant, kernel)
            else:
                with_flashinfer(case, variant, kernel, ("eager", "use_cuda_graph", "replayed"))
