"""The release has a known bug that this very configuration hits.

## What it does
Matches release and resolved configuration (mode, backend, model runner, speculation, parallelism, device) against the bundled advisories.

## Why it fails under graphs
Each advisory names a confirmed crash or wrong output under graphs, with the releases concerned and a workaround.

## Known problems
Conditions that depend on the device or the model hold only where `--gpu` or `--model-config` says so.

## Example
    vllm serve M -tp 4 --decode-context-parallel-size 2                # 0.13.0 to 0.17.1: illegal access or wrong results with full decode graphs

## Use instead
    vllm serve M -tp 4 --decode-context-parallel-size 2 -cc.cudagraph_mode=PIECEWISE

## Fix safety
No fix is applied.

## How it is confirmed
By the threads that each advisory links.

## References
See the advisories in `graphlint/config/data/advisories`, OSV records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """Advisories that match."""
    from graphlint.config.advisories import advisory_findings

    yield from advisory_findings(resolved)


RULE = DeploymentRule(
    id="GL613",
    name="known-hazard",
    summary="the release has a known bug that this configuration hits",
    severity="error",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#45425", "vllm-project/vllm#29539", "vllm-project/vllm#27057"),
    bad=(
        DeploymentExample(
            "context parallelism without an override", "vllm serve M -tp 4 --decode-context-parallel-size 2", "0.13.0", "sm_90"
        ),
        DeploymentExample(
            "gpt-oss on Triton", "VLLM_ATTENTION_BACKEND=TRITON_ATTN vllm serve openai/gpt-oss-20b --max-num-seqs 16", "0.11.2"
        ),
        DeploymentExample(
            "a layerwise connector under full graphs",
            'vllm serve M --kv-transfer-config \'{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both","kv_connector_extra_config":{"use_layerwise":true}}\'',
            "0.16.0",
            "sm_90",
        ),
    ),
    good=(
        DeploymentExample(
            "the workaround", "vllm serve M -tp 4 --decode-context-parallel-size 2 -cc.cudagraph_mode=PIECEWISE", "0.13.0", "sm_90"
        ),
        DeploymentExample("a later release", "vllm serve M -tp 4 --decode-context-parallel-size 2", "0.20.0", "sm_90"),
        DeploymentExample("another model", "VLLM_ATTENTION_BACKEND=TRITON_ATTN vllm serve Qwen/Qwen3-8B --max-num-seqs 16", "0.11.2"),
    ),
)
