"""A padded token count reaches attention metadata on a path where the graph mode need not be FULL.

## What it does
Follows the token count of attention metadata back from the metadata's constructor, through parameters, to the call that decides it. If
that call hands over the padded count of a batch descriptor without asking for the FULL mode, it is reported. The legal form picks the
padded count under FULL and the live one (the last query offset) otherwise.

## Why it fails under graphs
Only FULL graphs pad requests together with tokens. Under PIECEWISE, and in eager steps padded across data-parallel ranks, the padded
tokens belong to no request: `num_actual_tokens` no longer equals `query_start_loc[-1]`, and a backend that divides or slices by it
asserts, or reads per-request rows past those of this step.

## Known problems
A caller that can only run FULL by construction is not recognised unless the mode is narrowed in view.

## Example
    self.build_metadata(num_reqs=num_reqs, num_tokens=batch_desc.num_tokens)

## Use instead
    num_tokens = batch_desc.num_tokens if batch_desc.cg_mode == CUDAGraphMode.FULL else int(query_start_loc_cpu[-1])
    self.build_metadata(num_reqs=num_reqs, num_tokens=num_tokens)

## Fix safety
FULL batches keep their count; other batches get the live one. Unsafe, because which expression is live is the author's knowledge.

## How it is confirmed
Decode planned by padded tokens over per-request offsets that were written for live requests.

## References
vllm-project/vllm#56181, vllm-project/vllm#55458.
"""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

from graphlint.api import Example, Finding, Project, Rule, Witness, make_finding, point, show


def check(project: Project) -> Iterator[Finding]:
    """Padded token counts that reach metadata without a test for FULL."""
    for decision in project.padded_metadata:
        value = show(decision.value)
        yield make_finding(
            rule=RULE.id,
            name=RULE.name,
            severity="error",
            confidence="medium",
            site=decision.site,
            buffer=None,
            witness=_WITNESS,
            trace=[
                point(decision.site, f"passes `{value}` (padded tokens) as `{decision.parameter}` in every mode"),
                point(decision.sink, "which becomes the token count of the attention metadata"),
            ],
            message=(
                f"`{value}` is padded whatever the graph mode, and becomes the token count of attention metadata: under PIECEWISE or data-parallel "
                "padding it counts tokens that no request owns"
            ),
        )


_WITNESS = Witness(
    [
        {"live": 12, "padded": 12, "unit": "requests", "mode": "PIECEWISE"},
        {"live": 3, "padded": 4, "unit": "tokens", "mode": "PIECEWISE"},
    ],
    [3, 4],
    "A step with 12 requests, then 3 decodes whose 3 tokens are padded to 4 under PIECEWISE: metadata says 4 tokens, the offsets end at 3, and a "
    "backend that plans by tokens reads a fourth row of the first step.",
)


def _drafter(step: str, extra: str = "") -> str:
    text = """
    from dataclasses import dataclass
    from vllm.config.compilation import CUDAGraphMode

    @dataclass
    class CommonAttentionMetadata:
        num_reqs: int
        num_actual_tokens: int

    @dataclass
    class BatchExecutionDescriptor:
        cg_mode: CUDAGraphMode
        num_tokens: int
        num_reqs: int

    def build_attn_metadata(num_reqs, num_tokens, query_start_loc):
        return CommonAttentionMetadata(num_reqs=num_reqs, num_actual_tokens=num_tokens)

    class Drafter:
        def propose(self, num_reqs, query_start_loc, batch_desc: BatchExecutionDescriptor):
            {step}{extra}
    """
    return dedent(text).format(step=step.strip().replace("\n", "\n        "), extra=extra)


_HELPER = "\n    def _metadata(self, num_reqs, num_tokens_padded, query_start_loc):\n        return build_attn_metadata(num_reqs, num_tokens_padded, query_start_loc)"

RULE = Rule(
    id="GL102",
    name="padded-count-in-metadata",
    summary="a padded token count reaches attention metadata on a path where the mode need not be FULL",
    severity="error",
    since="0.1.0",
    tokens=(b"AttentionMetadata", b"AttnMetadata", b"BatchExecutionDescriptor", b"batch_desc"),
    check=check,
    references=("vllm-project/vllm#56181", "vllm-project/vllm#55458"),
    bad=(
        Example("descriptor's count as it is", _drafter("return build_attn_metadata(num_reqs, batch_desc.num_tokens, query_start_loc)")),
        Example(
            "through a local and a helper",
            _drafter(
                "padded = batch_desc.num_tokens\nreturn self._metadata(num_reqs, num_tokens_padded=padded, query_start_loc=query_start_loc)",
                _HELPER,
            ),
        ),
        Example(
            "the test for FULL comes after",
            _drafter(
                "meta = build_attn_metadata(num_reqs, batch_desc.num_tokens, query_start_loc)\n"
                "if batch_desc.cg_mode == CUDAGraphMode.FULL:\n    self.manager.run_fullgraph(batch_desc)\nelse:\n    self.generate(meta)"
            ),
        ),
    ),
    good=(
        Example(
            "padded under FULL only",
            _drafter(
                "num_tokens = batch_desc.num_tokens if batch_desc.cg_mode == CUDAGraphMode.FULL else query_start_loc[-1]\n"
                "return build_attn_metadata(num_reqs, num_tokens, query_start_loc)"
            ),
        ),
        Example(
            "the call itself is under FULL",
            _drafter(
                "if batch_desc.cg_mode == CUDAGraphMode.FULL:\n    return build_attn_metadata(num_reqs, batch_desc.num_tokens, query_start_loc)\nreturn None"
            ),
        ),
        Example("near miss: the live count", _drafter("return build_attn_metadata(num_reqs, query_start_loc[-1], query_start_loc)")),
    ),
)
