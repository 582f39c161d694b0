"""All outcomes of one deployment in one release: the expected one, and what other facts would give."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphlint.config.deployment import Deployment
from graphlint.config.explore import Answer, explore
from graphlint.config.history import flag_history
from graphlint.config.merge import LoadYaml, Merged, Problem, Setting, config_words, merge
from graphlint.config.pipeline import Outcome, resolve
from graphlint.config.request import Request, build_request
from graphlint.config.situation import Given, Situation
from graphlint.config.tables import Tables
from graphlint.config.versions import Version
from graphlint.config.words import Word


@dataclass
class Alternative:
    """Another outcome and the facts that lead to it."""

    outcome: Outcome
    situation: Situation
    answers: list[Answer]


@dataclass
class Resolved:
    """A deployment resolved for one release. `alternatives` differ from `outcome` in the effective mode."""

    deployment: Deployment
    version: Version
    tables: Tables
    request: Request
    outcome: Outcome
    situation: Situation
    alternatives: list[Alternative] = field(default_factory=list)
    #: options that would decide between the outcomes: "--gpu", "--model-config", or the name of a symbolic value
    needs: list[str] = field(default_factory=list)

    @property
    def merged(self) -> Merged:
        """The settings as merged."""
        return self.request.merged

    @property
    def effective(self) -> list[str]:
        """Every effective mode that the input allows, the expected first."""
        return list(dict.fromkeys([self.outcome.effective, *(a.outcome.effective for a in self.alternatives)]))


def resolve_deployment(deployment: Deployment, version: Version, tables: Tables, given: Given, load_yaml: LoadYaml | None = None) -> Resolved:
    """Resolves one vLLM deployment under one release."""
    merged = _merged(deployment, version, tables, load_yaml)
    request = build_request(merged, deployment.env, version, tables)
    runs: list[tuple[Situation, Outcome, list[Answer]]] = []

    def run(choices: object) -> tuple[Situation, Outcome]:
        situation = Situation(request, tables, given, choices)  # type: ignore[arg-type]
        return situation, resolve(situation)

    for (situation, outcome), answers in explore(run, limit=48):
        runs.append((situation, outcome, answers))
    situation, outcome, base = runs[0]
    resolved = Resolved(deployment, version, tables, request, outcome, situation)
    needed: dict[str, None] = {}
    for other_situation, other, answers in runs[1:]:
        if other.effective == outcome.effective:
            continue
        resolved.alternatives.append(Alternative(other, other_situation, answers))
        expected = {a.question: a.label for a in base}
        for answer in answers:
            if expected.get(answer.question) != answer.label:
                needed[_option(answer.question)] = None
    resolved.needs = list(needed)
    return resolved


def _merged(deployment: Deployment, version: Version, tables: Tables, load_yaml: LoadYaml | None) -> Merged:
    if deployment.inline is None:
        return merge(deployment.args, version, tables, deployment.entry, load_yaml)
    if deployment.entry == "values":
        return merge(config_words(deployment.inline, version, tables), version, tables, "module", load_yaml)
    merged = Merged()
    known = {flag.dest for flag in tables.flags.values()}
    for key, value, span in deployment.inline:
        if key == "model" and isinstance(value, str):
            merged.model = Word(value, span)
        if value is not None:
            merged.values[key] = Setting(value, span, key)
        if known and key not in known and key in _once_known():
            merged.problems.append(Problem("unknown-option", f"{key} is not an engine argument of {version}", span, True, "--" + key.replace("_", "-")))
    return merged


def _once_known() -> frozenset[str]:
    return frozenset(flag_history())


def _option(question: str) -> str:
    if question == "gpu":
        return "--gpu"
    if question.startswith("model:"):
        return "--model-config"
    if question.startswith("support of"):
        return f"--assume support= ({question})"
    return question
