"""A backend's declared support silently replaces the CUDA-graph mode by a weaker one.

## What it does
Reports the rewrite that vLLM makes after the model is loaded, when the weakest attention group does not support the mode: full graphs are
lost for batches with prefill, or, under speculative decoding, for decode.

## Why it fails under graphs
Nothing fails; the server runs slower than it was asked to and says so in one log line among hundreds. A single-token-decode backend with
speculative decoding loses the decode graphs, which costs more than drafting wins (16 % in the report below, from 57 to 33 tokens a second in another).

## Known problems
The backend that the platform picks depends on the device: without `--gpu` the answer is given for the usual ones and only reported where they agree.

## Example
    vllm serve M --attention-backend FLASHINFER --speculative-config '{"method":"mtp","num_speculative_tokens":2}'     # 0.23.0 on sm_121

## Use instead
    vllm serve M --attention-backend FLASH_ATTN --speculative-config '{"method":"mtp","num_speculative_tokens":2}'

## Fix safety
No fix is applied: another backend may lack a feature that the model needs.

## How it is confirmed
The released resolver is run against this resolution on every combination of mode, support level and query length (tests/ecosystem).

## References
vllm-project/vllm#49547, vllm-project/vllm#54992, vllm-project/vllm#35387.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, decode_mode, deployment_finding, rewrites, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """Rewrites made for the weakest backend."""
    found = rewrites(resolved, "support", "support-spec", "uncompiled")
    if not found or resolved.outcome.error is not None:
        return
    lost = any(r.loses for r in found)
    first, last = found[0].before, found[-1].after
    reason = found[-1].why
    span = setting_span(
        resolved, "attention_backend", "attention_config", "VLLM_ATTENTION_BACKEND", "compilation_config", "speculative_config"
    )
    yield deployment_finding(
        resolved,
        RULE.id,
        RULE.name,
        "warning" if lost else "info",
        f"{first} becomes {last}: {reason}",
        span=span,
        trace=True,
        advice=_advice(resolved),
    )


def _advice(resolved: Resolved) -> str | None:
    outcome = resolved.outcome
    if outcome.support is None:
        return None
    wanted = {"ALWAYS"} if decode_mode(outcome.mode) == "FULL" else {"ALWAYS", "UNIFORM_BATCH"}
    weak = outcome.support.weakest.backend
    backend = resolved.tables.backends.get(weak)
    if backend is None or backend.kind != "attention":
        return f"{weak} decides here; ask for {outcome.mode} so that configuration and behaviour agree"
    others = [
        name
        for name, other in resolved.tables.backends.items()
        if other.kind == "attention"
        and other.mla == backend.mla
        and other.sparse == backend.sparse
        and name != weak
        and other.support
        and all(s.level in wanted for s in other.support)
        and not name.startswith(("ROCM", "XPU", "CPU"))
    ]
    listed = ", ".join(others[:4])
    if listed:
        return f"use a backend that declares {' or '.join(sorted(wanted))}: {listed}; or ask for {outcome.mode}"
    return f"ask for {outcome.mode}, which is what runs"


RULE = DeploymentRule(
    id="GL602",
    name="graph-mode-downgraded",
    summary="a backend's declared support replaces the CUDA-graph mode by a weaker one",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#49547", "vllm-project/vllm#54992", "vllm-project/vllm#35387"),
    bad=(
        DeploymentExample(
            "single-token decode under speculation",
            'vllm serve M --attention-backend FLASHINFER --speculative-config \'{"method":"mtp","num_speculative_tokens":2}\'',
            "0.23.0",
            "sm_121",
        ),
        DeploymentExample(
            "full decode only, two tokens a request",
            'vllm serve M --attention-backend CUTLASS_MLA -cc.cudagraph_mode=FULL_DECODE_ONLY --speculative-config \'{"method":"mtp","num_speculative_tokens":1}\'',
            gpu="sm_100",
        ),
        DeploymentExample(
            "full graphs without compilation", "vllm serve M --attention-backend FLASHMLA -cc.mode=0 -cc.cudagraph_mode=FULL", gpu="sm_90"
        ),
    ),
    good=(
        DeploymentExample(
            "a uniform-batch backend",
            'vllm serve M --attention-backend FLASHMLA --speculative-config \'{"method":"mtp","num_speculative_tokens":1}\'',
            gpu="sm_90",
        ),
        DeploymentExample(
            "full graphs where the backend has them", "vllm serve M -cc.cudagraph_mode=FULL", "0.25.1", "sm_90", ("backend=FLASH_ATTN",)
        ),
        DeploymentExample(
            "the release that learned it",
            'vllm serve M --attention-backend FLASHINFER --speculative-config \'{"method":"eagle3","model":"D","num_speculative_tokens":7}\'',
            gpu="sm_86",
        ),
    ),
)
