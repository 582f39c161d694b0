"""Breakable CUDA graphs are switched on where they do harm, or nothing.

## What it does
Reports `VLLM_USE_BREAKABLE_CUDAGRAPH=1` where the release's model runner has no breakable wrapper, where its wrapper replaces full graphs, and where the model's
attention op is no break point.

## Why it fails under graphs
A breakable graph is split only at decorated functions. Where attention is not one of them it is captured with the lengths of the capture batch, and replays
them: wrong tokens. On V1 from 0.22.0 to 0.29.0 the wrapper takes FULL dispatches too, so decode replays a broken graph with eager attention.

## Known problems
Out-of-tree attention backends may decorate their own op, or not; they are not known.

## Example
    VLLM_USE_BREAKABLE_CUDAGRAPH=1 vllm serve M                  # 0.22.1, V1: attention is captured

## Use instead
    vllm serve M                                                 # compiled piecewise graphs

## Fix safety
No fix is applied.

## How it is confirmed
The break points are extracted from each release; the wrapper's place by reading the runners.

## References
pytorch/torchtitan#3685, vllm-project/vllm#53030, vllm-project/vllm#56312, vllm-project/vllm#54127.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import (
    DeploymentExample,
    DeploymentRule,
    Finding,
    V,
    decode_mode,
    deployment_finding,
    has_piecewise,
    setting_span,
)

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved

_SWITCH = "VLLM_USE_BREAKABLE_CUDAGRAPH"


def check(resolved: Resolved) -> Iterator[Finding]:
    """What the explicit switch does in this release, on this runner, for this model."""
    outcome = resolved.outcome
    if (
        outcome.error is not None
        or not outcome.breakable
        or _SWITCH not in resolved.deployment.env
        or outcome.runner is None
        or outcome.mode == "NONE"
    ):
        return
    span, v2 = setting_span(resolved, _SWITCH), outcome.runner.v2
    if v2 and resolved.version < V("0.23.0"):
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            f"model runner V2 of {resolved.version} has no breakable graphs: the switch turns compilation off and captures "
            "nothing piecewise, so prefill runs eager",
            span=span,
            advice=f"remove {_SWITCH}",
        )
        return
    if has_piecewise(outcome.mode) and not _breaks_at_attention(resolved):
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "error",
            f"the model's attention is no break point in {resolved.version}: it is captured inside the piecewise graph "
            "and replays the capture batch's lengths",
            span=span,
            advice=f"remove {_SWITCH}, or ask for FULL_DECODE_ONLY",
        )
    elif decode_mode(outcome.mode) == "FULL" and not v2 and resolved.version < V("0.30.0"):
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            f"on V1 of {resolved.version} the breakable wrapper replaces full graphs: decode replays a broken graph with eager attention",
            span=span,
            advice=f"remove {_SWITCH}, use model runner V2, or upgrade to 0.30.0",
        )


def _breaks_at_attention(resolved: Resolved) -> bool:
    points = resolved.tables.break_points
    if resolved.situation.model.mla:
        return any("mla" in point for point in points)
    return any(".attention.attention." in point or "unified_attention" in point for point in points)


RULE = DeploymentRule(
    id="GL619",
    name="breakable-graph-hazard",
    summary="breakable CUDA graphs are switched on where they do harm, or nothing",
    severity="warning",
    since="0.1.0",
    check=check,
    min_version="0.22.0",
    references=("pytorch/torchtitan#3685", "vllm-project/vllm#53030", "vllm-project/vllm#56312", "vllm-project/vllm#54127"),
    bad=(
        DeploymentExample(
            "attention is captured",
            "VLLM_USE_V2_MODEL_RUNNER=0 VLLM_USE_BREAKABLE_CUDAGRAPH=1 vllm serve Qwen/Qwen3-1.7B",
            "0.22.1",
            "sm_90",
        ),
        DeploymentExample(
            "no wrapper on V2",
            "VLLM_USE_BREAKABLE_CUDAGRAPH=1 vllm serve Qwen/Qwen3-1.7B -cc.cudagraph_mode=FULL_AND_PIECEWISE",
            "0.22.1",
            "sm_90",
        ),
        DeploymentExample(
            "full graphs replaced",
            "VLLM_USE_V2_MODEL_RUNNER=0 VLLM_USE_BREAKABLE_CUDAGRAPH=1 vllm serve deepseek-ai/DeepSeek-V2-Lite",
            "0.28.0",
            "sm_90",
        ),
    ),
    good=(
        DeploymentExample("not switched on", "vllm serve Qwen/Qwen3-1.7B", "0.22.1", "sm_90"),
        DeploymentExample("switched off", "VLLM_USE_BREAKABLE_CUDAGRAPH=0 vllm serve deepseek-ai/DeepSeek-V4-Pro", "0.33.0", "sm_90"),
        DeploymentExample(
            "a release where both live together", "VLLM_USE_BREAKABLE_CUDAGRAPH=1 vllm serve Qwen/Qwen3-1.7B", "0.33.0", "sm_90"
        ),
    ),
)
