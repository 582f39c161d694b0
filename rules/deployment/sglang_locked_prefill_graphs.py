"""An explicit prefill graph backend skips SGLang's own compatibility checks.

## What it does
Reports `--cuda-graph-backend-prefill` (and its JSON form) where the default would have been switched off for this deployment.

## Why it fails under graphs
Only the default is switched off for pipeline and context parallelism, two-batch overlap, KDA models and unvalidated all-to-all backends; an explicit choice is
"locked" and captures anyway, with metadata that lacks what the feature needs.

## Known problems
Opting in to pipeline parallelism is documented; it is reported as information.

## Example
    python -m sglang.launch_server --model-path M --dcp-size 2 --cuda-graph-backend-prefill breakable

## Use instead
    python -m sglang.launch_server --model-path M --dcp-size 2

## Fix safety
No fix is applied.

## How it is confirmed
By `arg_groups/cuda_graph_hook.py` of 0.5.23.

## References
sgl-project/sglang (arg_groups/cuda_graph_hook.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding

if TYPE_CHECKING:
    from graphlint.config.sglang import SglangDeployment


def check(resolved: SglangDeployment) -> Iterator[Finding]:
    """Explicit backends that skip a rule which would have applied."""
    from graphlint.config.sglang import sglang_finding

    if resolved.errors or not resolved.bypassed:
        return
    reason = resolved.bypassed[0]
    yield sglang_finding(
        resolved,
        RULE.id,
        RULE.name,
        "info" if reason == "pipeline parallelism" else "warning",
        f"the explicit prefill backend {resolved.prefill} skips the check that would switch it off: {reason}",
        span=resolved.span(resolved.prefill_by),
        advice=f"remove {resolved.prefill_by} and let SGLang decide",
    )


RULE = DeploymentRule(
    id="GL621",
    name="sglang-locked-prefill-graphs",
    summary="an explicit prefill graph backend skips SGLang's compatibility checks",
    severity="warning",
    since="0.1.0",
    check_sglang=check,
    references=("sgl-project/sglang",),
    bad=(
        DeploymentExample(
            "context parallelism",
            "python -m sglang.launch_server --model-path M --tp-size 8 --dcp-size 2 --cuda-graph-backend-prefill breakable",
        ),
        DeploymentExample(
            "two-batch overlap",
            "python -m sglang.launch_server --model-path M --enable-two-batch-overlap --cuda-graph-backend-prefill breakable",
        ),
        DeploymentExample(
            "as JSON",
            'python -m sglang.launch_server --model-path M --dcp-size 2 --cuda-graph-config \'{"prefill":{"backend":"breakable"}}\'',
        ),
    ),
    good=(
        DeploymentExample("the default", "python -m sglang.launch_server --model-path M --tp-size 8 --dcp-size 2"),
        DeploymentExample(
            "explicit and compatible", "python -m sglang.launch_server --model-path M --tp-size 8 --cuda-graph-backend-prefill breakable"
        ),
        DeploymentExample(
            "explicitly off", "python -m sglang.launch_server --model-path M --dcp-size 2 --cuda-graph-backend-prefill disabled"
        ),
    ),
)
