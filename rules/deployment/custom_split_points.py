"""A custom `splitting_ops` list changes the CUDA-graph mode.

## What it does
Reports an empty list, which removes piecewise graphs, and fused attention with quantisation, which does the same.

## Why it fails under graphs
Piecewise capture needs split points. An empty list turns PIECEWISE into NONE and FULL_AND_PIECEWISE into FULL, which a backend without full support then turns
into FULL_DECODE_ONLY: prefill has no graphs. In 0.10.1 to 0.11.0 PIECEWISE became FULL instead.

## Known problems
A list that misses an op of the release is reported as GL601, since the server stops.

## Example
    vllm serve M -cc.splitting_ops=[]

## Use instead
    vllm serve M -cc.cudagraph_mode=FULL_DECODE_ONLY        # says what it means

## Fix safety
No fix is applied.

## How it is confirmed
The released `set_splitting_ops_for_v1` is run against this resolution (tests/ecosystem).

## References
vllm-project/vllm#20059.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, deployment_finding, rewrites, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """Rewrites made while the split points are set."""
    if resolved.outcome.error is not None:
        return
    for rewrite in rewrites(resolved, "split"):
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            f"{rewrite.before} becomes {rewrite.after}: {rewrite.why}",
            span=setting_span(resolved, "compilation_config"),
            trace=True,
            advice="leave splitting_ops out, or ask for the mode that results",
        )


RULE = DeploymentRule(
    id="GL616",
    name="custom-split-points",
    summary="a custom splitting_ops list changes the CUDA-graph mode",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#20059",),
    bad=(
        DeploymentExample("an empty list", "vllm serve M --attention-backend FLASHMLA -cc.splitting_ops=[]", gpu="sm_90"),
        DeploymentExample(
            "an empty list under PIECEWISE",
            'vllm serve M --compilation-config \'{"cudagraph_mode":"PIECEWISE","splitting_ops":[]}\'',
            "0.19.1",
        ),
        DeploymentExample(
            "the reverse in 0.10.2",
            'vllm serve M --compilation-config \'{"cudagraph_mode":"PIECEWISE","splitting_ops":[]}\'',
            "0.10.2",
            "sm_90",
        ),
    ),
    good=(
        DeploymentExample("no list", "vllm serve M --attention-backend FLASHMLA", gpu="sm_90"),
        DeploymentExample(
            "an empty list with full graphs only", "vllm serve M -cc.cudagraph_mode=FULL_DECODE_ONLY -cc.splitting_ops=[]", "0.25.1"
        ),
        DeploymentExample(
            "an empty list without compilation",
            "vllm serve M -cc.mode=0 -cc.cudagraph_mode=FULL_DECODE_ONLY -cc.splitting_ops=[]",
            "0.25.1",
        ),
    ),
)
