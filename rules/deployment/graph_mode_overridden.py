"""A property of the model or a feature of the deployment overrides the CUDA-graph mode.

## What it does
Reports rewrites made for pooling and encoder-decoder models, context parallelism, DeepEP high-throughput and MoonEP kernels, layerwise KV connectors, dynamic
speculative decoding, and platforms without graphs.

## Why it fails under graphs
Each of these cannot be captured in some mode, so vLLM picks another one: one log line, decode eager or piecewise, latency to match.

## Known problems
Whether a model pools, or is a mixture of experts, is taken from its configuration, its name or the flags; `--model-config` settles it.

## Example
    vllm serve MOE -dp 8 --enable-expert-parallel --all2all-backend deepep_high_throughput      # no graphs at all

## Use instead
    vllm serve MOE -dp 8 --enable-expert-parallel --all2all-backend deepep_low_latency          # for decode servers

## Fix safety
No fix is applied.

## How it is confirmed
By the release's own `__post_init__` and platform hooks, which this follows branch by branch.

## References
vllm-project/vllm#24123, vllm-project/vllm#29558, vllm-project/vllm#30072, vllm-project/vllm#48664.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, Severity, V, deployment_finding, rewrites, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved
    from graphlint.config.outcome import Rewrite

_SETTINGS = {
    "model": ("compilation_config", "runner", "task"),
    "dcp": ("decode_context_parallel_size", "prefill_context_parallel_size"),
    "deepep": ("all2all_backend", "VLLM_ALL2ALL_BACKEND"),
    "connector": ("kv_transfer_config",),
    "dynamic-speculation": ("speculative_config",),
    "platform": ("compilation_config",),
}
_ADVICE = {
    "deepep": "use deepep_low_latency (or another capturable all-to-all backend) on servers that decode; keep high throughput for prefill",
    "dcp": "ask for PIECEWISE, or upgrade: later releases keep full graphs under decode context parallelism",
    "connector": "ask for PIECEWISE, or use the connector without its layerwise mode",
    "dynamic-speculation": "use model runner V2 (VLLM_USE_V2_MODEL_RUNNER=1), which keeps full graphs, or a fixed number of tokens",
}


def check(resolved: Resolved) -> Iterator[Finding]:
    """Rewrites made for the model or a feature."""
    if resolved.outcome.error is not None:
        return
    for rewrite in rewrites(resolved, *_SETTINGS):
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            _severity(resolved, rewrite),
            f"{rewrite.before} becomes {rewrite.after}: {rewrite.why}",
            span=setting_span(resolved, *_SETTINGS[rewrite.kind]),
            trace=True,
            advice=_ADVICE.get(rewrite.kind),
        )


def _severity(resolved: Resolved, rewrite: Rewrite) -> Severity:
    """A default that merely does not apply to this kind of model is nothing to act on; graphs that nobody gets are."""
    if rewrite.kind == "platform":
        return "info"
    asked = resolved.outcome.requested_by == "compilation_config.cudagraph_mode"
    if rewrite.kind == "model" and not asked:
        eager = bool(resolved.situation.model.encoder_decoder) and resolved.version < V("0.13.0")
        return "warning" if eager or rewrite.after == "NONE" else "info"
    return "warning" if rewrite.loses else "info"


RULE = DeploymentRule(
    id="GL604",
    name="graph-mode-overridden",
    summary="the model or a feature of the deployment overrides the CUDA-graph mode",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#24123", "vllm-project/vllm#29558", "vllm-project/vllm#30072", "vllm-project/vllm#48664"),
    bad=(
        DeploymentExample(
            "high-throughput kernels", "vllm serve MOE -dp 8 --enable-expert-parallel --all2all-backend deepep_high_throughput"
        ),
        DeploymentExample("a pooling model", "vllm serve M --runner pooling -cc.cudagraph_mode=FULL"),
        DeploymentExample(
            "a layerwise connector",
            'vllm serve M --kv-transfer-config \'{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both","kv_connector_extra_config":{"use_layerwise":true}}\'',
        ),
        DeploymentExample(
            "context parallelism in 0.11.2", "vllm serve M -tp 8 --decode-context-parallel-size 8", "0.11.2", "sm_90", ("mla",)
        ),
    ),
    good=(
        DeploymentExample("low-latency kernels", "vllm serve MOE -dp 8 --enable-expert-parallel --all2all-backend deepep_low_latency"),
        DeploymentExample(
            "high throughput on one rank", "vllm serve MOE --enable-expert-parallel --all2all-backend deepep_high_throughput"
        ),
        DeploymentExample(
            "a connector without layerwise mode",
            'vllm serve M --kv-transfer-config \'{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}\'',
        ),
    ),
)
