"""An environment variable that this release does not read, or reads only with another value.

## What it does
Reports `VLLM_*` variables that another release reads and this one does not, and values that do not do what they seem to.

## Why it fails under graphs
`VLLM_ATTENTION_BACKEND` chose the backend, and with it the graph support, until 0.14.1. Later releases ignore it: the deployment runs another backend, at 1.5
tokens a second in the report below.

## Known problems
Variables that no modelled release knows are left alone: they may belong to a plug-in.

## Example
    VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve M                     # 0.26.0: ignored

## Use instead
    vllm serve M --attention-backend FLASHINFER

## Fix safety
No fix is applied.

## How it is confirmed
`vllm/envs.py` of each release, extracted.

## References
vllm-project/vllm#50292.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, Severity, V, deployment_finding

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved

#: variables that change the graph mode or the backend
_RELEVANT = {
    "VLLM_ATTENTION_BACKEND": "--attention-backend",
    "VLLM_FLASH_ATTN_VERSION": "--attention-config.flash_attn_version",
    "VLLM_USE_TRTLLM_ATTENTION": "--attention-config.use_trtllm_attention",
    "VLLM_ALL2ALL_BACKEND": "--all2all-backend",
    "VLLM_USE_V2_MODEL_RUNNER": "",
    "VLLM_USE_BREAKABLE_CUDAGRAPH": "",
    "VLLM_USE_CUDNN_PREFILL": "--attention-config.use_cudnn_prefill",
    "VLLM_V1_USE_PREFILL_DECODE_ATTENTION": "--attention-config.use_prefill_decode_attention",
    "VLLM_TORCH_COMPILE_LEVEL": "--compilation-config",
}


def check(resolved: Resolved) -> Iterator[Finding]:
    """Variables of the deployment that the release does not read."""
    known = set(resolved.tables.env)
    for name, word in resolved.deployment.env.items():
        if not name.startswith("VLLM_"):
            continue
        if name not in known:
            yield from _unread(resolved, name)
        elif name == "VLLM_ATTENTION_BACKEND" and resolved.version >= V("0.13.0"):
            yield deployment_finding(
                resolved,
                RULE.id,
                RULE.name,
                "info",
                f"{name} is deprecated in {resolved.version} and not read from 0.15.0",
                span=word.span,
                advice=f"use {_RELEVANT[name]}",
                confidence="high",
            )
        elif name == "VLLM_USE_BREAKABLE_CUDAGRAPH" and word.known and word.text.lower() in ("true", "yes", "on"):
            yield deployment_finding(
                resolved,
                RULE.id,
                RULE.name,
                "warning",
                f"{name}={word.text} leaves breakable graphs off: only 1 enables them",
                span=word.span,
                advice=f"{name}=1",
                confidence="high",
            )


def _unread(resolved: Resolved, name: str) -> Iterator[Finding]:
    from graphlint.config.history import env_history, lifetime

    history = lifetime(env_history(name), resolved.version)
    if not history:
        return
    severity: Severity = "warning" if name in _RELEVANT else "info"
    replacement = _RELEVANT.get(name) or ""
    yield deployment_finding(
        resolved,
        RULE.id,
        RULE.name,
        severity,
        f"{name} is not read by {resolved.version}: {history}",
        span=resolved.deployment.env[name].span,
        advice=f"use {replacement}" if replacement else "remove it",
        confidence="high",
    )


RULE = DeploymentRule(
    id="GL606",
    name="dead-environment-variable",
    summary="an environment variable that this release does not read",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#50292",),
    bad=(
        DeploymentExample("the backend by environment", "VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve M", "0.26.0"),
        DeploymentExample(
            "in a container",
            {
                "compose.yaml": "services:\n  llm:\n    image: vllm/vllm-openai:v0.19.1\n    command: --model M\n    environment:\n      VLLM_ATTENTION_BACKEND: FLASH_ATTN\n"
            },
        ),
        DeploymentExample("before it existed", "VLLM_USE_BREAKABLE_CUDAGRAPH=1 vllm serve M", "0.19.1"),
        DeploymentExample("a value that does nothing", "VLLM_USE_BREAKABLE_CUDAGRAPH=true vllm serve M"),
    ),
    good=(
        DeploymentExample("while it was read", "VLLM_ATTENTION_BACKEND=FLASH_ATTN vllm serve M", "0.11.2"),
        DeploymentExample("a variable of something else", "VLLM_MY_PLUGIN=1 vllm serve M"),
        DeploymentExample("a variable of the release", "VLLM_USE_V2_MODEL_RUNNER=0 vllm serve M"),
    ),
)
