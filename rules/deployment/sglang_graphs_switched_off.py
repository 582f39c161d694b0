"""SGLang switches graphs off for this deployment without being asked.

## What it does
Reports the phases whose graphs are switched off by the attention backend, DeepEP's normal mode, disaggregation or a compatibility rule.

## Why it fails under graphs
Decode or prefill runs eager, after one warning in the log. A prefill server of 0.5.9 and older has no graphs at all unless piecewise graphs are enabled.

## Known problems
Rules that depend on the loaded model are applied only where its name or `--assume` tells.

## Example
    python -m sglang.launch_server --model-path M --attention-backend torch_native

## Use instead
    python -m sglang.launch_server --model-path M --attention-backend flashinfer

## Fix safety
No fix is applied.

## How it is confirmed
By `server_args.py` and `arg_groups/cuda_graph_hook.py`.

## References
sgl-project/sglang (server_args.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, Severity

if TYPE_CHECKING:
    from graphlint.config.sglang import SglangDeployment


def check(resolved: SglangDeployment) -> Iterator[Finding]:
    """One finding per reason."""
    from graphlint.config.sglang import sglang_finding

    if resolved.errors:
        return
    reasons: dict[str, list[str]] = {}
    for phase, _, _, why in resolved.steps:
        reasons.setdefault(why, []).append(phase)
    for why, phases in reasons.items():
        expected = "prefill server" in why or phases == ["prefill"]
        severity: Severity = "info" if expected else "warning"
        yield sglang_finding(
            resolved,
            RULE.id,
            RULE.name,
            severity,
            f"{' and '.join(phases)} run{'s' if len(phases) == 1 else ''} without graphs: {why}",
            span=resolved.span("--attention-backend", "--deepep-mode", "--disaggregation-mode", "--dcp-size", "--pp-size"),
        )


RULE = DeploymentRule(
    id="GL622",
    name="sglang-graphs-switched-off",
    summary="SGLang switches graphs off for this deployment without being asked",
    severity="warning",
    since="0.1.0",
    check_sglang=check,
    references=("sgl-project/sglang",),
    bad=(
        DeploymentExample("a backend without graphs", "python -m sglang.launch_server --model-path M --attention-backend torch_native"),
        DeploymentExample("DeepEP normal mode", "python -m sglang.launch_server --model-path M --deepep-mode normal"),
        DeploymentExample(
            "a prefill server",
            {"run.sh": "pip install sglang==0.5.9\npython -m sglang.launch_server --model-path M --disaggregation-mode prefill\n"},
        ),
    ),
    good=(
        DeploymentExample("defaults", "python -m sglang.launch_server --model-path M"),
        DeploymentExample("switched off on purpose", "python -m sglang.launch_server --model-path M --disable-cuda-graph"),
        DeploymentExample("a backend with graphs", "python -m sglang.launch_server --model-path M --attention-backend fa3"),
    ),
)
