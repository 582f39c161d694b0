"""Decode batches that the server admits are wider than the largest captured graph.

## What it does
Computes the capture sizes as the release does and compares the widest decode batch they serve with `max_num_seqs`, where the deployment sets one of them.

## Why it fails under graphs
Sizes are tokens, not requests: with speculative decoding a request needs num_speculative_tokens + 1 of them, and only sizes that are whole multiples of
that serve a decode batch. A maximum off the grid is truncated to the grid. Batches beyond the last size run eager: in the report below the second request
brought a server from 133 to 25 tokens a second.

## Known problems
Defaults that do not cover the default `max_num_seqs` of large GPUs are not reported: nobody chose them.

## Example
    vllm serve M --max-num-seqs 6 --max-cudagraph-capture-size 6 --speculative-config '{"method":"mtp","num_speculative_tokens":3}'    # covers 1 request

## Use instead
    vllm serve M --max-num-seqs 6 --cudagraph-capture-sizes 4 8 12 16 20 24 --speculative-config '{"method":"mtp","num_speculative_tokens":3}'

## Fix safety
No fix is applied: more graphs take memory and time at start.

## How it is confirmed
The released size methods are run against this computation on thousands of random settings (tests/ecosystem).

## References
vllm-project/vllm#46329, vllm-project/vllm#54933, SemiAnalysisAI/InferenceX#2522.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import (
    DeploymentExample,
    DeploymentRule,
    Finding,
    Severity,
    decode_mode,
    deployment_finding,
    mixed_mode,
    setting_span,
)

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """Admitted decode batches beyond the captured ones."""
    outcome, request = resolved.outcome, resolved.request
    if outcome.error is not None or outcome.mode == "NONE" or outcome.covered is None or outcome.sizes is None:
        return
    sized = request.sizes is not None or request.largest is not None or bool(request.legacy_sizes)
    seqs_given = isinstance(request.given("max_num_seqs"), int)
    if outcome.covered >= outcome.max_num_seqs or not (sized or seqs_given):
        return
    piecewise = mixed_mode(outcome.mode) == "PIECEWISE" and outcome.sizes.largest >= (outcome.covered + 1) * outcome.query_len
    if not sized and outcome.covered * 4 >= outcome.max_num_seqs * 3 and (piecewise or outcome.query_len == 1):
        return  # a default grid that ends just below an odd limit: the rest is served by the piecewise graph
    severity: Severity = "warning" if sized or not piecewise or outcome.covered * 2 <= outcome.max_num_seqs else "info"
    rest = f"piecewise up to {outcome.sizes.largest} tokens, then eager" if piecewise else "eager"
    tokens = f" ({outcome.query_len} tokens each)" if outcome.query_len > 1 else ""
    truncated = f"; {outcome.sizes.truncated_from} was truncated to the grid" if outcome.sizes.truncated_from else ""
    yield deployment_finding(
        resolved,
        RULE.id,
        RULE.name,
        severity,
        f"{decode_mode(outcome.mode)} graphs cover {outcome.covered} of {outcome.max_num_seqs} decode requests{tokens}; wider batches run {rest}{truncated}",
        span=setting_span(
            resolved, "max_cudagraph_capture_size", "cudagraph_capture_sizes", "cuda_graph_sizes", "max_num_seqs", "compilation_config"
        ),
        advice=_advice(resolved),
    )


def _advice(resolved: Resolved) -> str:
    outcome = resolved.outcome
    width, most = outcome.query_len, outcome.max_num_seqs
    if most <= 12:
        return f"--cudagraph-capture-sizes {' '.join(str(n * width) for n in range(1, most + 1))}"
    steps = [n for n in (1, 2, 4, *range(8, most, 8 if most <= 128 else 32)) if n < most]
    if len(steps) > 10:
        shown = [*steps[:5], "...", *steps[-2:]]
        return "--cudagraph-capture-sizes " + " ".join(str(n * width) if isinstance(n, int) else n for n in [*shown, most])
    return f"--cudagraph-capture-sizes {' '.join(str(n * width) for n in [*steps, most])}"


RULE = DeploymentRule(
    id="GL609",
    name="decode-batches-not-covered",
    summary="decode batches that the server admits are wider than the largest captured graph",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#46329", "vllm-project/vllm#54933", "SemiAnalysisAI/InferenceX#2522"),
    bad=(
        DeploymentExample(
            "a maximum off the grid",
            'vllm serve M --max-num-seqs 6 --max-cudagraph-capture-size 6 --speculative-config \'{"method":"mtp","num_speculative_tokens":3}\'',
            "0.23.0",
            assume=("support=UNIFORM_BATCH",),
        ),
        DeploymentExample(
            "requests taken for tokens",
            'vllm serve M --max-num-seqs 48 --cudagraph-capture-sizes $(seq 1 48) --speculative-config \'{"method":"mtp","num_speculative_tokens":3}\'',
            "0.19.1",
            assume=("support=UNIFORM_BATCH",),
        ),
        DeploymentExample("a list that ends too early", "vllm serve M --max-num-seqs 6 --cudagraph-capture-sizes 1 2 4", "0.25.1"),
        DeploymentExample(
            "more requests than the default reaches", "vllm serve M --max-num-seqs 2048 -cc.cudagraph_mode=FULL_DECODE_ONLY", "0.25.1"
        ),
    ),
    good=(
        DeploymentExample(
            "multiples up to the limit",
            'vllm serve M --max-num-seqs 6 --cudagraph-capture-sizes 4 8 12 16 20 24 --speculative-config \'{"method":"mtp","num_speculative_tokens":3}\'',
            "0.23.0",
            assume=("support=UNIFORM_BATCH",),
        ),
        DeploymentExample("defaults", "vllm serve M", gpu="H100"),
        DeploymentExample("a limit that the default reaches", "vllm serve M --max-num-seqs 128"),
        DeploymentExample("no graphs", "vllm serve M --max-num-seqs 2048 --enforce-eager"),
    ),
)
