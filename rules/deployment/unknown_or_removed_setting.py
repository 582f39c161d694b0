"""An option, field, backend or method that this release does not have: the server stops, or drops it without a word.

## What it does
Compares options, JSON fields, backend names and speculative methods with those of the release, and says when they came or went.

## Why it fails under graphs
Graph settings were renamed in nearly every release. From 0.13.0 an unknown JSON field is a validation error; 0.11.1 and 0.12.0 drop it, so that
`full_cuda_graph` quietly means nothing.

## Known problems
Options that plug-ins add are not known; an option that no modelled release has is reported with less confidence.

## Example
    vllm serve M -O.cudagraph_mode=FULL                                     # an error from 0.13.0
    vllm serve M --compilation-config '{"level": 3}'                        # an error from 0.18.0

## Use instead
    vllm serve M -cc.cudagraph_mode=FULL
    vllm serve M --compilation-config '{"mode": 3}'

## Fix safety
No fix is applied: files are often used with several releases.

## How it is confirmed
The tables are extracted from each release's source; the parser of 0.33.0 was run on the spellings above.

## References
vllm-project/vllm#28150.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphlint.config.rules_api import Confidence, DeploymentExample, DeploymentRule, Finding, deployment_finding, problems

if TYPE_CHECKING:
    from graphlint.config.answer import Resolved
    from graphlint.config.merge import Problem
    from graphlint.finding import Severity

_KINDS = (
    "unknown-option",
    "unknown-field",
    "dropped-field",
    "deprecated-field",
    "unknown-backend",
    "unknown-method",
    "bare-level",
    "dotted-O",
    "model-option",
)
_REPLACEMENTS = {
    "--task": "--runner and --convert",
    "--cuda-graph-sizes": "--cudagraph-capture-sizes or --max-cudagraph-capture-size",
    "--max-seq-len-to-capture": "--max-cudagraph-capture-size",
    "--num-speculative-tokens": "--speculative-config",
    "--speculative-model": "--speculative-config",
    "--use-v2-block-manager": "nothing: it is gone",
    "--disable-log-requests": "--no-enable-log-requests",
}


def check(resolved: Resolved) -> Iterator[Finding]:
    """Problems of names, each with its history."""
    for problem in problems(resolved, *_KINDS):
        message, advice, confidence = problem.message, None, None
        if problem.kind == "unknown-option":
            message, advice, confidence = _option(resolved, problem)
        elif problem.kind == "unknown-backend":
            message = _backend(resolved, problem)
        severity: Severity = "error" if problem.fatal else "warning"
        yield deployment_finding(
            resolved, RULE.id, RULE.name, severity, message, span=problem.span, advice=advice, confidence=confidence or "high"
        )


def _option(resolved: Resolved, problem: Problem) -> tuple[str, str | None, Confidence]:
    from graphlint.config.history import lifetime, option_history

    if problem.option.startswith("-O"):
        return (
            f"{problem.option}: JSON behind -O is not accepted from 0.12.0, where -O takes a level",
            "use --compilation-config or -cc",
            "high",
        )
    known = option_history(problem.option)
    history = lifetime(known, resolved.version)
    advice = f"use {_REPLACEMENTS[problem.option]}" if problem.option in _REPLACEMENTS else None
    if not known:
        return f"{problem.message}, nor of any modelled release", advice, "medium"
    return f"{problem.message}: {history}" if history else problem.message, advice, "high"


def _backend(resolved: Resolved, problem: Problem) -> str:
    from graphlint.config.history import backend_history, lifetime

    name = problem.message.split("'")[1].upper() if "'" in problem.message else ""
    history = lifetime(backend_history(name), resolved.version)
    return f"{problem.message}: {history}" if history else problem.message


RULE = DeploymentRule(
    id="GL605",
    name="unknown-or-removed-setting",
    summary="an option, field, backend or method that this release does not have",
    severity="error",
    since="0.1.0",
    check=check,
    references=("vllm-project/vllm#28150",),
    bad=(
        DeploymentExample("a removed field", 'vllm serve M --compilation-config \'{"level": 3, "cudagraph_mode": "PIECEWISE"}\'', "0.18.0"),
        DeploymentExample("a removed option", "vllm serve M --cuda-graph-sizes 64", "0.13.0"),
        DeploymentExample("a backend that is gone", "vllm serve M --attention-backend XFORMERS", "0.19.1"),
        DeploymentExample(
            "a method from a later release",
            'vllm serve M --speculative-config \'{"method":"dflash","model":"D","num_speculative_tokens":15}\'',
            "0.19.1",
        ),
        DeploymentExample("a dropped field", "vllm serve M --compilation-config '{\"full_cuda_graph\": true}'", "0.11.2"),
    ),
    good=(
        DeploymentExample(
            "the field of the release", 'vllm serve M --compilation-config \'{"mode": 3, "cudagraph_mode": "PIECEWISE"}\'', "0.18.0"
        ),
        DeploymentExample("the option of the release", "vllm serve M --cuda-graph-sizes 64", "0.11.0"),
        DeploymentExample("an abbreviated option", "vllm serve M --max-num-se 8"),
    ),
)
