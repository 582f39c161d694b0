"""`--config=FILE` is accepted and the file is never read.

## What it does
Reports the one-word form of `--config`.

## Why it fails under graphs
Only the two-word form is expanded into arguments. The one-word form reaches the parser as an option of its own that nobody looks at: every graph
setting of the file is lost, without a message, in all releases from 0.10.1 to 0.33.0.

## Known problems
None known.

## Example
    vllm serve M --config=serve.yaml

## Use instead
    vllm serve M --config serve.yaml

## Fix safety
No fix is applied: the file's settings would take effect for the first time.

## How it is confirmed
The parser of 0.33.0 was run alone; the other releases hold the same lines.

## References
vllm-project/vllm#43252.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import DeploymentExample, DeploymentRule, Finding, deployment_finding, problems

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved


def check(resolved: Resolved) -> Iterator[Finding]:
    """The one-word form."""
    for problem in problems(resolved, "config-equals"):
        yield deployment_finding(
            resolved,
            RULE.id,
            RULE.name,
            "warning",
            problem.message,
            span=problem.span,
            advice="separate option and file by a space",
            confidence="high",
        )


RULE = DeploymentRule(
    id="GL607",
    name="ignored-config-file",
    summary="`--config=FILE` is accepted and the file is never read",
    severity="warning",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#43252",),
    bad=(
        DeploymentExample("one word", "vllm serve M --config=serve.yaml"),
        DeploymentExample("in an old release", "vllm serve M --config=serve.yaml", "0.10.2"),
        DeploymentExample(
            "in a script", {"run.sh": "#!/bin/bash\nexec vllm serve M \\\n  --config=${CONFIG:-serve.yaml} \\\n  --port 8000\n"}
        ),
    ),
    good=(
        DeploymentExample("two words", "vllm serve M --config serve.yaml"),
        DeploymentExample("another option with that beginning", "vllm serve M --config-format=hf"),
        DeploymentExample(
            "a file behind two words", {"run.sh": "vllm serve M --config serve.yaml\n", "serve.yaml": "max-num-seqs: 8\nport: 8001\n"}
        ),
    ),
)
