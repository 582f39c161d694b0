"""Piecewise graphs are asked for, or are the default, while torch.compile is off: they silently vanish.

## What it does
Reports the rewrite of PIECEWISE or FULL_AND_PIECEWISE when the compilation mode is not VLLM_COMPILE, whether that comes from `mode`, `-O0` or
`TORCH_COMPILE_DISABLE`.

## Why it fails under graphs
Piecewise capture splits the compiled model at attention. Without compilation there is nothing to split: 0.12.0 to 0.29.0 turn all graphs off, 0.30.0 and
later keep full decode graphs and drop those for prefill; before 0.12.0 the server stops.

## Known problems
Stock `torch.compile` on model runner V2 loses all graphs from 0.32.0; before that the result depends on the runner.

## Example
    vllm serve M -cc.mode=0 -cc.cudagraph_mode=FULL_AND_PIECEWISE        # 0.29.0: NONE; 0.30.0: FULL_DECODE_ONLY

## Use instead
    vllm serve M -cc.mode=0 -cc.cudagraph_mode=FULL_DECODE_ONLY

## Fix safety
No fix is applied: whether compilation or the piecewise graphs are dispensable is the operator's choice.

## How it is confirmed
By the release's own `__post_init__`, which this follows branch by branch.

## References
vllm-project/vllm#28150.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, V, deployment_finding, rewrites, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """Rewrites made because nothing is compiled."""
    if resolved.outcome.error is not None:
        return
    for rewrite in rewrites(resolved, "compile"):
        disabled = any(kind == "torch-compile-disable" for kind, _ in resolved.outcome.notes)
        because = "TORCH_COMPILE_DISABLE=1 turns compilation off" if disabled else rewrite.why
        span = setting_span(resolved, *(("TORCH_COMPILE_DISABLE",) if disabled else ()), "compilation_config", "optimization_level")
        keep = "FULL_DECODE_ONLY" if resolved.version != V("0.12.0") else "compilation mode VLLM_COMPILE (3)"
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            f"{rewrite.before} becomes {rewrite.after}: {because}",
            span=span,
            trace=True,
            advice=f"let the model be compiled, or ask for {keep}, which needs no compilation" if "FULL" in keep else f"ask for {keep}",
        )


RULE = DeploymentRule(
    id="GL603",
    name="graphs-without-compilation",
    summary="piecewise graphs vanish because nothing is compiled",
    severity="warning",
    since="0.1.0",
    check=check,
    min_version="0.12.0",
    references=("vllm-project/vllm#28150",),
    bad=(
        DeploymentExample("all graphs lost", "vllm serve M -cc.mode=0 -cc.cudagraph_mode=FULL_AND_PIECEWISE", "0.29.0"),
        DeploymentExample("prefill graphs lost", "vllm serve M -cc.mode=0 -cc.cudagraph_mode=FULL_AND_PIECEWISE", "0.30.0"),
        DeploymentExample("by an environment variable", "TORCH_COMPILE_DISABLE=1 vllm serve M", "0.25.1"),
        DeploymentExample("any mode in 0.12.0", "vllm serve M -cc.mode=0 -cc.cudagraph_mode=FULL_DECODE_ONLY", "0.12.0"),
    ),
    good=(
        DeploymentExample(
            "full decode graphs need no compilation", "vllm serve M -cc.mode=0 -cc.cudagraph_mode=FULL_DECODE_ONLY", "0.25.1"
        ),
        DeploymentExample("compiled", "vllm serve M -cc.mode=3 -cc.cudagraph_mode=FULL_AND_PIECEWISE", "0.29.0"),
        DeploymentExample("no graphs wanted", "vllm serve M -cc.mode=0 -cc.cudagraph_mode=NONE", "0.29.0"),
    ),
)
