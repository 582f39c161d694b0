"""The target model replays graphs and the drafter runs eager.

## What it does
Works out the drafter's own mode: on model runner V1 it has only piecewise graphs, tied to the mode of mixed batches; on V2 its later steps have only full
graphs, tied to the mode of decode.

## Why it fails under graphs
A draft step is a small model and almost all launch overhead; eager drafting can cost more than speculation saves. FULL_DECODE_ONLY on V1 and PIECEWISE on V2
both look harmless and leave the drafter without graphs.

## Known problems
Methods without draft graphs at all (ngram, suffix) are not reported.

## Example
    vllm serve M -cc.cudagraph_mode=FULL_DECODE_ONLY --speculative-config '{"method":"eagle3","model":"D","num_speculative_tokens":3}'     # V1

## Use instead
    vllm serve M -cc.cudagraph_mode=FULL_AND_PIECEWISE --speculative-config '{"method":"eagle3","model":"D","num_speculative_tokens":3}'

## Fix safety
No fix is applied.

## How it is confirmed
By reading `initialize_cudagraph_keys` (V1) and the speculators (V2) of each release.

## References
vllm-project/vllm#54992, vllm-project/vllm#35387.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, deployment_finding, setting_span

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """A drafter with steps that have no graph while the target has some."""
    outcome, speculation = resolved.outcome, resolved.request.speculation
    drafter = outcome.drafter
    if (
        outcome.error is not None
        or drafter is None
        or speculation is None
        or speculation.enforce_eager
        or outcome.mode == "NONE"
        or not drafter.graphs
    ):
        return
    single = speculation.tokens == 1
    if drafter.later != "NONE" or (single and drafter.first != "NONE"):
        return
    which = "the drafter runs" if drafter.first == "NONE" else "all draft steps after the first run"
    yield deployment_finding(
        resolved,
        RULE.id,
        RULE.name,
        "warning",
        f"{which} eager while the target runs {outcome.mode}: {drafter.why}",
        span=setting_span(resolved, "compilation_config", "speculative_config", "spec_method"),
        trace=True,
        advice="ask for FULL_AND_PIECEWISE"
        if outcome.requested == outcome.mode
        else "give the target a backend that keeps full decode graphs under speculation",
    )


RULE = DeploymentRule(
    id="GL612",
    name="eager-drafter",
    summary="the target model replays graphs and the drafter runs eager",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#54992", "vllm-project/vllm#35387"),
    bad=(
        DeploymentExample(
            "full decode only on V1",
            'vllm serve M -cc.cudagraph_mode=FULL_DECODE_ONLY --speculative-config \'{"method":"eagle3","model":"D","num_speculative_tokens":3}\'',
            "0.19.1",
            "sm_90",
        ),
        DeploymentExample(
            "piecewise on V2",
            'vllm serve M -cc.cudagraph_mode=PIECEWISE --speculative-config \'{"method":"eagle3","model":"D","num_speculative_tokens":3}\'',
            "0.33.0",
            "sm_90",
        ),
        DeploymentExample(
            "piecewise after a downgrade on V2",
            'vllm serve M --attention-backend FLASHINFER --speculative-config \'{"method":"eagle3","model":"D","num_speculative_tokens":7}\'',
            "0.27.1",
            "sm_86",
        ),
    ),
    good=(
        DeploymentExample(
            "the default mode",
            'vllm serve M --speculative-config \'{"method":"eagle3","model":"D","num_speculative_tokens":3}\'',
            "0.19.1",
            "sm_90",
        ),
        DeploymentExample(
            "piecewise on V1",
            'vllm serve M -cc.cudagraph_mode=PIECEWISE --speculative-config \'{"method":"eagle3","model":"D","num_speculative_tokens":3}\'',
            "0.19.1",
            "sm_90",
        ),
        DeploymentExample(
            "no drafter to speak of",
            'vllm serve M --speculative-config \'{"method":"ngram","num_speculative_tokens":3}\'',
            "0.19.1",
            "sm_90",
        ),
    ),
)
