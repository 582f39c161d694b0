"""Two settings contradict each other, and the one that the author cared about loses.

## What it does
Reports `--enforce-eager` beside a CUDA-graph mode or capture sizes, capture sizes beside mode NONE, and a drafter that is kept eager beside full graphs wanted.

## Why it fails under graphs
Eager always wins, in every release: mode and sizes are discarded without a message. The thread below benchmarked FULL_DECODE_ONLY that never ran.

## Known problems
A shared base command that is extended per environment may contradict itself on purpose; silence it there.

## Example
    vllm serve M --enforce-eager -cc.cudagraph_mode=FULL_DECODE_ONLY

## Use instead
    vllm serve M -cc.cudagraph_mode=FULL_DECODE_ONLY

## Fix safety
No fix is applied: which of the two was meant is not known.

## How it is confirmed
By the release's own `__post_init__`.

## References
vllm-project/vllm#34523.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, deployment_finding, refused_arguments, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """Settings that another one makes void."""
    request = resolved.request
    if refused_arguments(resolved):
        return
    sizes = request.sizes is not None or request.largest is not None
    mode = request.mode if isinstance(request.mode, str) else None
    if request.enforce_eager:
        void = [f"cudagraph_mode={mode}"] if mode not in (None, "NONE") else []
        if sizes:
            void.append("the capture sizes")
        if void:
            yield deployment_finding(
                resolved,
                RULE.id,
                RULE.name,
                "warning",
                f"--enforce-eager discards {' and '.join(void)}: no graphs are captured",
                span=setting_span(resolved, "enforce_eager"),
                advice="remove --enforce-eager, or what it discards",
                confidence="high",
            )
    elif mode == "NONE" and sizes:
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            "capture sizes are given, and cudagraph_mode=NONE captures nothing",
            span=setting_span(resolved, "cudagraph_capture_sizes", "max_cudagraph_capture_size", "compilation_config"),
            advice="remove the sizes, or ask for a mode with graphs",
            confidence="high",
        )


RULE = DeploymentRule(
    id="GL611",
    name="contradictory-graph-settings",
    summary="two settings contradict each other, and one is discarded",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#34523",),
    bad=(
        DeploymentExample("eager and a mode", "vllm serve M --enforce-eager -cc.cudagraph_mode=FULL_DECODE_ONLY"),
        DeploymentExample("eager and sizes", "vllm serve M --enforce-eager --cudagraph-capture-sizes 1 2 4 8", "0.19.1"),
        DeploymentExample("no mode and sizes", "vllm serve M -cc.cudagraph_mode=NONE --max-cudagraph-capture-size 64"),
    ),
    good=(
        DeploymentExample("eager alone", "vllm serve M --enforce-eager"),
        DeploymentExample("eager and NONE", "vllm serve M --enforce-eager -cc.cudagraph_mode=NONE"),
        DeploymentExample("eager taken back", "vllm serve M --no-enforce-eager -cc.cudagraph_mode=FULL_DECODE_ONLY"),
    ),
)
