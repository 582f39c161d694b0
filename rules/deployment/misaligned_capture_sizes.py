"""Capture sizes that are truncated, dropped, or do not fit the tokens of a decode request.

## What it does
Reports a maximum that is truncated to the grid, sizes above `max_num_batched_tokens` that are dropped, and sizes that are no multiple of the tokens per request
where nothing rounds them: full decode graphs before 0.11.1.

## Why it fails under graphs
A full decode graph is replayed for whole requests. Where a captured size is no multiple of num_speculative_tokens + 1 and nothing rounds it, the captured
metadata describes a request that does not exist: an illegal memory access in 0.11.0.

## Known problems
The rounding of model runner V1 may drop sizes that look right; the report shows the final list.

## Example
    vllm serve M --max-cudagraph-capture-size 42                       # truncated to 40

## Use instead
    vllm serve M --cudagraph-capture-sizes 1 2 4 8 16 24 32 42

## Fix safety
No fix is applied.

## How it is confirmed
The released size methods are run against this computation on thousands of random settings (tests/ecosystem).

## References
vllm-project/vllm#28207, vllm-project/vllm#28315, vllm-project/vllm#54933.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, V, decode_mode, deployment_finding, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """What became of the sizes that were asked for."""
    outcome, request = resolved.outcome, resolved.request
    if outcome.error is not None or outcome.mode == "NONE" or outcome.initial_sizes is None:
        return
    span = setting_span(resolved, "max_cudagraph_capture_size", "cudagraph_capture_sizes", "cuda_graph_sizes", "compilation_config")
    first = outcome.initial_sizes
    if first.truncated_from is not None and request.largest is not None:
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            f"max_cudagraph_capture_size {first.truncated_from} is off the grid and is truncated to {first.largest}",
            span=span,
            advice=f"give the sizes as a list that ends with {first.truncated_from}, or a maximum on the grid (8s up to 256, then 16s)",
        )
    if first.dropped and not request.sequence_parallel:
        listed = ", ".join(map(str, first.dropped[:5]))
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            f"capture sizes {listed} exceed max_num_batched_tokens ({outcome.max_num_batched_tokens}) and are dropped",
            span=span,
            advice=f"raise --max-num-batched-tokens to {max(first.dropped)} or leave them out",
        )
    if resolved.version < V("0.11.1") and decode_mode(outcome.mode) == "FULL" and outcome.query_len > 1 and outcome.sizes is not None:
        odd = [s for s in outcome.sizes.sizes if s % outcome.query_len]
        if odd:
            yield deployment_finding(
                resolved,
                RULE.id,
                RULE.name,
                "error",
                f"{resolved.version} captures full decode graphs of {odd[0]} tokens, no multiple of the {outcome.query_len} tokens of a request: illegal memory access",
                span=setting_span(resolved, "speculative_config") or span,
                trace=True,
                advice=f"upgrade to 0.11.1 or later, give sizes that are multiples of {outcome.query_len}, or use PIECEWISE",
            )


RULE = DeploymentRule(
    id="GL610",
    name="misaligned-capture-sizes",
    summary="capture sizes that are truncated, dropped, or do not fit the tokens of a decode request",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#28207", "vllm-project/vllm#28315", "vllm-project/vllm#54933"),
    bad=(
        DeploymentExample("off the grid", "vllm serve M --max-cudagraph-capture-size 42", "0.25.1"),
        DeploymentExample("above the token budget", "vllm serve M --max-num-batched-tokens 512 --cudagraph-capture-sizes 1 2 4 512 1024"),
        DeploymentExample(
            "nothing rounds in 0.11.0",
            'vllm serve M --speculative-config \'{"method":"mtp","num_speculative_tokens":2}\'',
            "0.11.0",
            "sm_90",
            ("backend=FLASHMLA", "mla"),
        ),
    ),
    good=(
        DeploymentExample("on the grid", "vllm serve M --max-cudagraph-capture-size 40", "0.25.1"),
        DeploymentExample("within the budget", "vllm serve M --max-num-batched-tokens 2048 --cudagraph-capture-sizes 1 2 4 512 1024"),
        DeploymentExample(
            "rounded since 0.11.1",
            'vllm serve M --speculative-config \'{"method":"mtp","num_speculative_tokens":2}\'',
            "0.11.1",
            "sm_90",
            ("backend=FLASHMLA", "mla"),
        ),
    ),
)
