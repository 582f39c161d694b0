"""A per-request buffer is sliced, sized or planned by a token count.

## What it does
Every buffer has a unit, from its allocation and its writers. A buffer with one entry a request that is sliced by a count of tokens is
reported, wherever the two counts need not be equal.

## Why it fails under graphs
With one token a request both counts agree, so nothing shows in tests. With speculative decoding, or with tokens padded to a capture size
while requests are not (PIECEWISE, data-parallel padding), the slice is longer than the batch: its rows beyond the last request are bogus
requests with an older step's states and offsets, or Python clamps the slice silently at the end of the buffer.

## Known problems
Paths that only ever see one token a request are recognised by a guard that says so; a contract that only callers know is not. Counts of a
part of the batch (`num_decode_tokens`) are reported as warnings.

## Example
    rows = metadata.num_actual_tokens
    indices = self.state_indices[:rows]            # allocated with max_num_seqs entries

## Use instead
    rows = metadata.num_reqs
    indices = self.state_indices[:rows]

## Fix safety
The right count is the author's to name; no automatic fix.

## How it is confirmed
Decode planned by padded tokens over per-request offsets that were written for live requests.

## References
vllm-project/vllm#45100 (GDN state indices), vllm-project/vllm#39773 (FlashInfer `paged_kv_indptr`).
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

from graphlint.api import Example, Finding, Project, Rule, Witness, make_finding, place, point, severity_of, show


def check(project: Project) -> Iterator[Finding]:
    """Per-request buffers with a token count as bound."""
    for mismatch in project.unit_mismatches:
        access = mismatch.access
        buffer = access.buffer
        bound = show(access.hi_expr) if access.hi_expr is not None else "?"
        trace = []
        if buffer.site is not None:
            trace.append(point(buffer.site, f"`{buffer.name}` is allocated with room for {buffer.capacity}"))
        if mismatch.writer is not None:
            writer = mismatch.writer
            written = show(writer.hi_expr) if writer.hi_expr is not None else "?"
            trace.append(point(place(writer.effect), f"is written up to `{written}` ({writer.hi})"))
        trace.append(point(place(access.effect), f"is sliced up to `{bound}` ({access.hi})"))
        yield make_finding(
            rule=RULE.id,
            name=RULE.name,
            severity="warning" if mismatch.partial else severity_of(buffer),
            confidence="medium",
            site=place(access.effect),
            buffer=buffer.name,
            trace=trace,
            witness=_WITNESS,
            message=f"`{buffer.name}` ({buffer.meaning}) has one entry a request but is sliced by `{bound}`, a count of tokens",
        )


_WITNESS = Witness(
    [
        {"live": 12, "padded": 12, "unit": "requests", "mode": "FULL"},
        {"live": 3, "padded": 4, "unit": "requests", "mode": "FULL", "tokens_per_request": 4},
    ],
    [4, 16],
    "3 requests of 4 tokens each, padded to 4 requests: a slice by tokens has 16 rows, of which 12 belong to no request of this step.",
)


def _builder(body: str) -> str:
    text = """
    import torch
    from vllm.v1.attention.backend import CommonAttentionMetadata

    class StateMetadataBuilder:
        def __init__(self, vllm_config, device):
            self.max_num_seqs = vllm_config.scheduler_config.max_num_seqs
            self.state_indices = torch.zeros((self.max_num_seqs,), dtype=torch.int32, device=device)
            self.cu_lens = torch.zeros((self.max_num_seqs + 1,), dtype=torch.int32, device=device)

        def build(self, num_reqs, num_actual_tokens, indices, cu_lens):
            {body}
    """
    return dedent(text).format(body=body.strip().replace("\n", "\n        "))


RULE = Rule(
    id="GL101",
    name="token-count-sizes-request-buffer",
    summary="a per-request buffer or metadata is sliced, sized or planned by a token count",
    severity="error",
    since="0.1.0",
    tokens=(b"num_actual_tokens", b"num_decode_tokens", b"num_input_tokens", b"num_reqs", b"raw_num_token"),
    check=check,
    references=("vllm-project/vllm#45100", "vllm-project/vllm#39773"),
    bad=(
        Example(
            "view handed out by tokens",
            _builder("self.state_indices[:num_reqs].copy_(indices)\nreturn Metadata(state_indices=self.state_indices[:num_actual_tokens])"),
            ("state_indices",),
        ),
        Example(
            "through a local name",
            _builder(
                "rows = num_actual_tokens\nself.state_indices[:num_reqs] = indices\nreturn Metadata(state_indices=self.state_indices[:rows])"
            ),
            ("state_indices",),
        ),
        Example(
            "offsets sliced by tokens plus one",
            _builder("self.cu_lens[: num_reqs + 1].copy_(cu_lens)\nreturn Metadata(cu_lens=self.cu_lens[: num_actual_tokens + 1])"),
            ("cu_lens",),
        ),
    ),
    good=(
        Example(
            "sliced by requests",
            _builder("self.state_indices[:num_reqs].copy_(indices)\nreturn Metadata(rows=self.state_indices[:num_reqs])"),
        ),
        Example(
            "near miss: a guard proves one token a request",
            _builder("if num_actual_tokens == num_reqs:\n    return Metadata(rows=self.state_indices[:num_actual_tokens])\nreturn None"),
        ),
        Example(
            "near miss: tokens divided by tokens per request",
            _builder("rows = num_actual_tokens // self.decode_query_len\nreturn Metadata(rows=self.state_indices[:rows])"),
        ),
    ),
)
