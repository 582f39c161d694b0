"""A hybrid model with the default `max_num_seqs` of a large GPU may have fewer Mamba cache blocks than requests.

## What it does
Reports hybrid models (linear attention, Mamba) on devices whose default `max_num_seqs` is 1024, where the deployment sets none.

## Why it fails under graphs
A full decode graph needs one state block per request. From 0.20.0 the server refuses to start, after loading the weights, when `max_num_seqs` exceeds the
blocks that fit; 0.18.0 to 0.19.1 silently capture less.

## Known problems
How many blocks fit depends on memory that only the running server measures: many deployments have enough.

## Example
    vllm serve Qwen/Qwen3.6-27B-FP8 --gpu-memory-utilization 0.95          # H100: ValueError where fewer than 1024 blocks fit

## Use instead
    vllm serve Qwen/Qwen3.6-27B-FP8 --gpu-memory-utilization 0.95 --max-num-seqs 256

## Fix safety
No fix is applied.

## How it is confirmed
By the check in `resolve_cudagraph_mode_and_sizes` of 0.20.0 and later.

## References
vllm-project/vllm#49064, vllm-project/vllm#34094, NVIDIA-NeMo/RL#2620.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, V, deployment_finding, has_full

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved

#: a default of this many requests or more has exceeded the blocks in the reports
_LARGE = 512


def check(resolved: Resolved) -> Iterator[Finding]:
    """Hybrid, full graphs, a large default."""
    outcome = resolved.outcome
    if outcome.error is not None or not has_full(outcome.mode) or not resolved.situation.model.hybrid or resolved.version < V("0.18.0"):
        return
    if resolved.request.given("max_num_seqs") is not None or outcome.max_num_seqs < _LARGE or resolved.situation.platform == "cpu":
        return
    what = "the server refuses to start" if resolved.version >= V("0.20.0") else "fewer sizes are captured"
    yield deployment_finding(
        resolved,
        RULE.id,
        RULE.name,
        "warning",
        f"max_num_seqs defaults to {outcome.max_num_seqs} here; if fewer Mamba cache blocks fit, {what}",
        confidence="medium",
        advice="set --max-num-seqs to what the server needs, for example 256",
    )


RULE = DeploymentRule(
    id="GL614",
    name="mamba-blocks-below-batch",
    summary="a hybrid model's default max_num_seqs may exceed its Mamba cache blocks",
    severity="warning",
    since="0.1.0",
    check=check,
    min_version="0.18.0",
    references=("vllm-project/vllm#49064", "vllm-project/vllm#34094", "NVIDIA-NeMo/RL#2620"),
    bad=(
        DeploymentExample(
            "a hybrid model on a large GPU", "vllm serve Qwen/Qwen3.6-27B-FP8 --gpu-memory-utilization 0.95", "0.25.1", "H100"
        ),
        DeploymentExample("another family", "vllm serve nvidia/NVIDIA-Nemotron-3-Nano-30B", "0.33.0", "H200"),
        DeploymentExample("capped silently", "vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct -tp 4", "0.19.1", "H200"),
    ),
    good=(
        DeploymentExample("a limit of its own", "vllm serve Qwen/Qwen3.6-27B-FP8 --max-num-seqs 128", "0.25.1", "H100"),
        DeploymentExample("no hybrid", "vllm serve meta-llama/Llama-3.1-8B-Instruct", "0.25.1", "H100"),
        DeploymentExample("a small default", "vllm serve Qwen/Qwen3.6-27B-FP8", "0.25.1", "RTX4090"),
    ),
)
