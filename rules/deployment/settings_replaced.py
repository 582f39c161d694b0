"""A later argument replaces an earlier one whole, where it looks as if the two were merged.

## What it does
Reports JSON options that are given twice, JSON beside dotted options, and long beside short dotted spellings, where keys of the first are lost.

## Why it fails under graphs
vLLM collects dotted options per spelling and appends them as JSON behind everything else; the last JSON of an option wins whole. A size list given with
`-cc.cudagraph_capture_sizes` thereby removes the mode given in `--compilation-config`.

## Known problems
None known.

## Example
    vllm serve M --compilation-config '{"cudagraph_mode":"FULL_DECODE_ONLY"}' -cc.cudagraph_capture_sizes=[1,2,4]

## Use instead
    vllm serve M -cc.cudagraph_mode=FULL_DECODE_ONLY -cc.cudagraph_capture_sizes=[1,2,4]

## Fix safety
No fix is applied: the settings that were lost would take effect.

## How it is confirmed
The parser of 0.33.0 was run on these command lines; older releases hold the same lines.

## References
vllm-project/recipes (DeepSeek-V4-Pro: one `--compilation-config` per layer of the recipe).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, deployment_finding, problems

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """Lost keys are a warning; repeated values only a remark."""
    for problem in problems(resolved, "replaced"):
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            problem.message,
            span=problem.span,
            advice="write all fields of the option in one place: one JSON object, or dotted options of one spelling",
            confidence="high",
        )
    for problem in problems(resolved, "repeated") if not resolved.deployment.layered else ():
        yield deployment_finding(
            resolved, RULE.id, RULE.name, "info", problem.message, span=problem.span, advice="keep one of them", confidence="high"
        )


RULE = DeploymentRule(
    id="GL608",
    name="settings-replaced",
    summary="a later argument replaces an earlier one whole instead of being merged",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/recipes",),
    bad=(
        DeploymentExample(
            "JSON and dotted",
            'vllm serve M --compilation-config \'{"cudagraph_mode":"FULL_DECODE_ONLY"}\' -cc.cudagraph_capture_sizes=[1,2,4]',
        ),
        DeploymentExample("two spellings", "vllm serve M --compilation-config.cudagraph_mode=FULL -cc.mode=0"),
        DeploymentExample(
            "JSON twice",
            'vllm serve M --compilation-config \'{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}\' --compilation-config \'{"custom_ops":["all"]}\'',
        ),
        DeploymentExample(
            "a file and the command line",
            {
                "run.sh": "vllm serve M --config s.yaml -cc.cudagraph_capture_sizes=[1,2]\n",
                "s.yaml": "compilation-config:\n  cudagraph_mode: FULL\n",
            },
        ),
    ),
    good=(
        DeploymentExample(
            "dotted options of one spelling", "vllm serve M -cc.cudagraph_mode=FULL_DECODE_ONLY -cc.cudagraph_capture_sizes=[1,2,4]"
        ),
        DeploymentExample(
            "one JSON object", 'vllm serve M --compilation-config \'{"cudagraph_mode":"FULL","cudagraph_capture_sizes":[1,2]}\''
        ),
        DeploymentExample("the same JSON twice", "vllm serve M -cc '{\"mode\":3}' -cc '{\"mode\":3}'"),
    ),
)
