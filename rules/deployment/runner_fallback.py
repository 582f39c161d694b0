"""A feature moves the deployment from model runner V2 to V1, with other graph rules.

## What it does
Remarks, as information, that the release would use V2 for this model and a setting makes it fall back.

## Why it fails under graphs
The runners round capture sizes differently, give the drafter different graphs and ask the backends differently. The fallback is one warning in the log.

## Known problems
Features that only a loaded model shows, and logits-processor plug-ins that are installed, are not known.

## Example
    vllm serve M --speculative-config '{"method":"suffix","num_speculative_tokens":8}'       # 0.33.0: falls back to V1

## Use instead
Nothing, if V1 is good enough. VLLM_USE_V2_MODEL_RUNNER=0 says that it is meant.

## Fix safety
No fix is applied.

## How it is confirmed
By `VllmConfig.use_v2_model_runner` of each release.

## References
vllm-project/vllm#47172.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, deployment_finding, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """A runner chosen because V2 lacks something."""
    runner = resolved.outcome.runner
    if resolved.outcome.error is not None or runner is None or runner.v2 or not runner.why.startswith("V2 does not support"):
        return
    yield deployment_finding(
        resolved,
        RULE.id,
        RULE.name,
        "info",
        f"falls back to model runner V1: {runner.why}",
        span=setting_span(
            resolved, "speculative_config", "enable_dbo", "logits_processors", "compilation_config", "prefill_context_parallel_size"
        ),
    )


RULE = DeploymentRule(
    id="GL617",
    name="runner-fallback",
    summary="a feature moves the deployment from model runner V2 to V1",
    severity="info",
    since="0.1.0",
    check=check,
    min_version="0.22.0",
    references=("vllm-project/vllm#47172",),
    bad=(
        DeploymentExample("a method that V2 lacks", 'vllm serve M --speculative-config \'{"method":"suffix","num_speculative_tokens":8}\''),
        DeploymentExample(
            "n-gram drafting in 0.25.1",
            'vllm serve meta-llama/Llama-3.1-8B --speculative-config \'{"method":"ngram","num_speculative_tokens":4}\'',
            "0.25.1",
        ),
        DeploymentExample(
            "sequence parallelism in 0.28.0", "vllm serve meta-llama/Llama-3.1-8B -tp 2 -cc.pass_config.enable_sp=true", "0.28.0"
        ),
    ),
    good=(
        DeploymentExample("a method that V2 has", 'vllm serve M --speculative-config \'{"method":"ngram","num_speculative_tokens":4}\''),
        DeploymentExample(
            "V1 on purpose",
            'VLLM_USE_V2_MODEL_RUNNER=0 vllm serve M --speculative-config \'{"method":"suffix","num_speculative_tokens":8}\'',
        ),
        DeploymentExample(
            "a release without V2", 'vllm serve M --speculative-config \'{"method":"suffix","num_speculative_tokens":8}\'', "0.19.1"
        ),
    ),
)
