"""The mode that results is a default worth knowing: another one than most releases have, or one that a flag does not change.

## What it does
Remarks, as information: the piecewise default of 0.10.1 and 0.10.2, `-O0`, the piecewise default of `-O1`, and `-O3`, which equals `-O2` for graphs.

## Why it fails under graphs
Nothing fails. Whoever compares releases or levels should know that decode ran without full graphs in one of them.

## Known problems
None known.

## Example
    vllm serve M -O1                     # PIECEWISE: no full decode graphs

## Use instead
    vllm serve M                         # -O2: FULL_AND_PIECEWISE

## Fix safety
No fix is applied.

## How it is confirmed
The optimisation levels are extracted from each release's source.

## References
vllm-project/vllm#26847.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, V, deployment_finding, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """Defaults that decide the mode."""
    outcome, request = resolved.outcome, resolved.request
    if outcome.error is not None or request.enforce_eager or outcome.requested_by == "compilation_config.cudagraph_mode":
        return
    span = setting_span(resolved, "optimization_level")
    if request.level == 1:
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "info",
            "-O1 makes PIECEWISE the default: decode has no full graphs",
            span=span,
            advice="-O2 (the default) adds full decode graphs",
            confidence="high",
        )
    elif request.level == 0:
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "info",
            "-O0 turns compilation and all CUDA graphs off",
            span=span,
            advice="leave -O0 out where throughput matters",
            confidence="high",
        )
    elif request.level == 3 and resolved.tables.optimization.get("3") == resolved.tables.optimization.get("2"):
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "info",
            f"-O3 equals -O2 for CUDA graphs in {resolved.version}: the flag changes nothing",
            span=span,
            confidence="high",
        )
    elif resolved.version < V("0.11.0") and outcome.requested == "PIECEWISE":
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "info",
            f"PIECEWISE is the default of {resolved.version}; 0.11.0 and later add full decode graphs",
            confidence="high",
        )


RULE = DeploymentRule(
    id="GL615",
    name="graph-default-differs",
    summary="the resulting mode is a default worth knowing",
    severity="info",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#26847",),
    bad=(
        DeploymentExample("level 1", "vllm serve M -O1"),
        DeploymentExample("level 3", "vllm serve M -O3"),
        DeploymentExample("level 0", "vllm serve M -O0", "0.19.1"),
        DeploymentExample("an old release", "vllm serve M", "0.10.2"),
    ),
    good=(
        DeploymentExample("the default", "vllm serve M"),
        DeploymentExample("a mode of one's own", "vllm serve M -O1 -cc.cudagraph_mode=FULL_AND_PIECEWISE"),
        DeploymentExample("a full default", "vllm serve M", "0.11.0"),
    ),
)
