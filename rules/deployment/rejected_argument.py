"""A file or argument is malformed: the server stops before it reads any graph setting.

## What it does
Reports broken YAML and shell quoting at its line, JSON that is none, values of the wrong type, options without a value, stray arguments, and settings that are
mutually exclusive.

## Why it fails under graphs
Graph settings are JSON inside shell inside YAML. One quoting layer too few, and the server exits with a usage message, or worse, reads something else.

## Known problems
Values that contain variables or templates are only checked as far as the text around them goes.

## Example
    vllm serve M --compilation-config {"cudagraph_mode": "FULL"}        # the shell removes the quotes

## Use instead
    vllm serve M --compilation-config '{"cudagraph_mode": "FULL"}'

## Fix safety
No fix is applied.

## How it is confirmed
By argparse and the JSON parser, which vLLM uses too.

## References
vllm-project/vllm#43252.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, deployment_finding, problems

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved

_KINDS = (
    "bad-json",
    "bad-value",
    "missing-value",
    "extra-argument",
    "explicit-argument",
    "conflict",
    "bad-mode",
    "config-twice",
    "config-missing",
    "config-type",
)
_ADVICE = {
    "bad-json": "quote the whole JSON text once more, with single quotes in a shell",
    "explicit-argument": "give the option alone, or its --no- form",
    "conflict": "keep one of the two",
}


def check(resolved: Resolved) -> Iterator[Finding]:
    """What the parser or a validator rejects."""
    seen: set[int] = set()
    for problem in problems(resolved, *_KINDS):
        if problem.kind == "extra-argument" and problem.span.line in seen:
            continue  # one broken quote makes many stray words
        seen.add(problem.span.line)
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "error",
            problem.message,
            span=problem.span,
            advice=_ADVICE.get(problem.kind),
            confidence="medium" if resolved.merged.open_ended else "high",
        )


RULE = DeploymentRule(
    id="GL618",
    name="rejected-argument",
    summary="a malformed file or argument stops the server",
    severity="error",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#43252",),
    bad=(
        DeploymentExample("JSON without quotes", "vllm serve M --compilation-config {cudagraph_mode: FULL}"),
        DeploymentExample("a backend twice", 'vllm serve M --attention-backend FLASH_ATTN --attention-config \'{"backend":"FLASHINFER"}\''),
        DeploymentExample("a mode that is none", "vllm serve M -cc.cudagraph_mode=FULL_AND_EAGER"),
        DeploymentExample(
            "broken YAML", {"compose.yaml": "services:\n  llm:\n    image: vllm/vllm-openai:v0.19.1\n   command: --model M\n"}
        ),
        DeploymentExample(
            "sizes in two places", "vllm serve M --cudagraph-capture-sizes 1 2 4 --compilation-config '{\"cudagraph_capture_sizes\":[1,2]}'"
        ),
    ),
    good=(
        DeploymentExample("quoted JSON", 'vllm serve M --compilation-config \'{"cudagraph_mode": "FULL_DECODE_ONLY"}\''),
        DeploymentExample(
            "a variable inside JSON", 'vllm serve M --speculative-config "{\\"method\\":\\"mtp\\",\\"num_speculative_tokens\\":$N}"'
        ),
        DeploymentExample(
            "a template in YAML",
            {
                "values.yaml": "{{- if .Values.on }}\ncontainers:\n- image: vllm/vllm-openai:v0.25.1\n  args: ['--model', '{{ .Values.model }}']\n{{- end }}\n"
            },
        ),
    ),
)
