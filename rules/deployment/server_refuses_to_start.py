"""The configuration is accepted by the command line and then stops the server while it starts.

## What it does
Resolves the deployment as the release does and reports the assertion or ValueError that the graph settings run into: FULL on a backend without any
graph support, no capture size left after rounding, sizes that contradict each other, split points that are not all listed, features that
the chosen model runner refuses, a backend that does not run on the device.

## Why it fails under graphs
Most of these checks run after the weights are loaded and the KV cache is laid out, minutes into the start, in every replica.

## Known problems
Features that only a loaded model shows (out-of-tree backends, plug-ins that rewrite the configuration) are not known.

## Example
    vllm serve M --attention-backend FLEX_ATTENTION -cc.cudagraph_mode=FULL        # vLLM 0.19.1: FLEX_ATTENTION declares NEVER

## Use instead
    vllm serve M --attention-backend FLEX_ATTENTION -cc.cudagraph_mode=PIECEWISE

## Fix safety
No fix is applied: what to give up is the operator's choice.

## How it is confirmed
The released resolver and size methods are run against this resolution for every modelled release (tests/ecosystem).

## References
vllm-project/vllm#28150, vllm-project/vllm#49549.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, deployment_finding, refused_arguments, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved

_SETTINGS = (
    ("splitting_ops", ("compilation_config",)),
    ("VLLM_USE_V2_MODEL_RUNNER", ("VLLM_USE_V2_MODEL_RUNNER",)),
    ("VLLM_USE_V1", ("VLLM_USE_V2_MODEL_RUNNER",)),
    ("max_cudagraph_capture_size", ("max_cudagraph_capture_size", "compilation_config")),
    ("capture size", ("cudagraph_capture_sizes", "max_cudagraph_capture_size", "compilation_config")),
    ("compile size", ("compilation_config",)),
    ("microbatching", ("all2all_backend", "enable_dbo")),
    ("decode context parallelism", ("decode_context_parallel_size",)),
    ("attention-backend", ("attention_backend", "attention_config", "VLLM_ATTENTION_BACKEND")),
    ("cudagraph_mode", ("compilation_config",)),
    ("CUDAGraphMode", ("compilation_config",)),
    ("adaptive verification", ("speculative_config",)),
)


def check(resolved: Resolved) -> Iterator[Finding]:
    """An error raised behind argument parsing."""
    error = resolved.outcome.error
    if error is None or refused_arguments(resolved):
        return
    span = None
    for words, settings in _SETTINGS:
        if words in error.message:
            span = setting_span(resolved, *settings)
            if span is not None:
                break
    yield deployment_finding(
        resolved,
        RULE.id,
        RULE.name,
        "error",
        f"vLLM {resolved.version} does not start: {error.kind}: {error.message} (in {error.symbol})",
        span=span,
        advice=_advice(error.message),
        trace=True,
    )


def _advice(message: str) -> str | None:
    if "splitting_ops" in message:
        return "leave splitting_ops out: the default lists every attention op of the release"
    if "PIECEWISE" in message:
        return "use cudagraph_mode=PIECEWISE, or a backend that declares graph support (`graphlint matrix`)"
    if "capture size" in message or "multiple of both" in message:
        return "give capture sizes that are multiples of num_speculative_tokens + 1"
    if "compilation mode VLLM_COMPILE" in message:
        return "leave the compilation mode at its default, or ask for FULL_DECODE_ONLY"
    return None


RULE = DeploymentRule(
    id="GL601",
    name="server-refuses-to-start",
    summary="the graph settings stop the server while it starts",
    severity="error",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#28150", "vllm-project/vllm#49549"),
    bad=(
        DeploymentExample(
            "FULL on a backend without support", "vllm serve M --attention-backend FLEX_ATTENTION -cc.cudagraph_mode=FULL", "0.19.1"
        ),
        DeploymentExample(
            "sizes that contradict each other", "vllm serve M --cudagraph-capture-sizes 1 2 4 8 --max-cudagraph-capture-size 64"
        ),
        DeploymentExample(
            "a partial list of split points",
            'vllm serve M --compilation-config \'{"cudagraph_mode":"PIECEWISE","splitting_ops":["vllm::unified_attention_with_output"]}\'',
            "0.19.1",
        ),
        DeploymentExample(
            "a runner that refuses the method",
            'VLLM_USE_V2_MODEL_RUNNER=1 vllm serve M --speculative-config \'{"method":"suffix","num_speculative_tokens":8}\'',
        ),
    ),
    good=(
        DeploymentExample(
            "FULL from the release that supports it", "vllm serve M --attention-backend FLEX_ATTENTION -cc.cudagraph_mode=FULL", "0.20.0"
        ),
        DeploymentExample("sizes that agree", "vllm serve M --cudagraph-capture-sizes 1 2 4 8 --max-cudagraph-capture-size 8"),
        DeploymentExample(
            "the same method with the runner left open",
            'vllm serve M --speculative-config \'{"method":"suffix","num_speculative_tokens":8}\'',
        ),
    ),
)
