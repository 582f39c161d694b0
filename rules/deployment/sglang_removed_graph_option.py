"""A CUDA-graph option that this SGLang release does not accept.

## What it does
Compares SGLang's graph options with the release: those of the piecewise era are gone from 0.5.20, per-phase options begin with 0.5.14.

## Why it fails under graphs
The server exits with a usage message, or argparse takes the option for an ambiguous abbreviation of its per-phase successors.

## Known problems
Without a stated release the newest modelled one answers; then this rule is silent.

## Example
    python -m sglang.launch_server --model-path M --cuda-graph-max-bs 64                    # 0.5.20

## Use instead
    python -m sglang.launch_server --model-path M --cuda-graph-max-bs-decode 64

## Fix safety
No fix is applied.

## How it is confirmed
By `server_args.py` of each release.

## References
sgl-project/sglang#36491.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding

if TYPE_CHECKING:
    from graphlint.config.sglang import SglangDeployment


def check(resolved: SglangDeployment) -> Iterator[Finding]:
    """Options outside their releases, and values that are rejected."""
    from graphlint.config.sglang import sglang_finding

    for option, instead, span in resolved.removed:
        if resolved.version is not None:
            yield sglang_finding(
                resolved,
                RULE.id,
                RULE.name,
                "error",
                f"{option} is not accepted by SGLang {resolved.version}",
                span=span,
                advice=f"use {instead}" if instead else None,
            )
    for message, span in resolved.errors:
        yield sglang_finding(resolved, RULE.id, RULE.name, "error", f"the server does not start: {message}", span=span)


_PIN = "pip install sglang==%s\npython -m sglang.launch_server --model-path M %s\n"

RULE = DeploymentRule(
    id="GL620",
    name="sglang-removed-graph-option",
    summary="a CUDA-graph option or value that this SGLang release rejects",
    severity="error",
    since="0.1.0",
    check_sglang=check,
    references=("sgl-project/sglang#36491", "NVIDIA-NeMo/RL#3612"),
    bad=(
        DeploymentExample("an alias that is gone", {"run.sh": _PIN % ("0.5.20", "--cuda-graph-max-bs 64")}),
        DeploymentExample("an option from later", {"run.sh": _PIN % ("0.5.9", "--cuda-graph-backend-prefill breakable")}),
        DeploymentExample("a rejected value", {"run.sh": _PIN % ("0.5.22", "--cuda-graph-backend-prefill tc_piecewise")}),
        DeploymentExample(
            "the memory saver", {"run.sh": "export SGLANG_MEMORY_SAVER_CUDA_GRAPH=1\n" + _PIN % ("0.5.22", "--enable-memory-saver")}
        ),
    ),
    good=(
        DeploymentExample("while it was accepted", {"run.sh": _PIN % ("0.5.9", "--cuda-graph-max-bs 64")}),
        DeploymentExample("the successor", {"run.sh": _PIN % ("0.5.22", "--cuda-graph-max-bs-decode 64")}),
        DeploymentExample("no stated release", {"run.sh": "python -m sglang.launch_server --model-path M --cuda-graph-max-bs 64\n"}),
    ),
)
