"""Every built-in rule is held to the same form, and the examples of an analysis rule are its tests: see CONTRIBUTING.md.

The examples of a `DeploymentRule` are deployments, not sources: tests/config runs them.
"""

from __future__ import annotations

import re

import pytest

from graphlint import registry
from graphlint.api import Example, Rule
from graphlint.config.rules_api import DeploymentRule
from graphlint.registry import RuleEntry
from graphlint.runner import run_check
from graphlint.settings import CheckOptions

HEADINGS = [
    "What it does", "Why it fails under graphs", "Known problems", "Example", "Use instead", "Fix safety", "How it is confirmed",
    "References",
]
#: Raised as rules arrive, so that a pack which is lost on the way (an empty folder, a broken build) does not pass.
MINIMUM_RULES = 30

RULES = registry.load()
ANALYSIS = [entry for entry in RULES if isinstance(entry.rule, Rule)]
by_rule = pytest.mark.parametrize("entry", list(RULES), ids=lambda entry: entry.rule.id)


def examples(kind: str) -> pytest.MarkDecorator:
    cases = [
        pytest.param(entry, example, id=f"{entry.rule.id}-{example.name.replace(' ', '-')}")
        for entry in ANALYSIS for example in getattr(entry.rule, kind)
    ]
    return pytest.mark.parametrize(("entry", "example"), cases)


def test_every_rule_file_loads():
    assert not RULES.errors
    assert len(RULES) == len(registry.rule_files(registry.built_in_pack()))
    assert len(RULES) >= MINIMUM_RULES


def test_only_the_family_of_deployments_holds_deployment_rules():
    families = {(entry.family, isinstance(entry.rule, DeploymentRule)) for entry in RULES}
    assert ("deployment", True) in families
    assert ("deployment", False) not in families
    assert {family for family, deployment in families if deployment} == {"deployment"}


@by_rule
def test_the_docstring_has_the_fixed_headings(entry: RuleEntry):
    found = re.findall(r"^## (.+)$", entry.doc, re.MULTILINE)
    assert found == HEADINGS
    sections = re.split(r"^## .+$", entry.doc, flags=re.MULTILINE)
    assert sections[0].strip(), "the page starts with a sentence"
    empty = [heading for heading, body in zip(HEADINGS, sections[1:], strict=True) if not body.strip()]
    assert not empty


@by_rule
def test_the_metadata_is_complete(entry: RuleEntry):
    rule = entry.rule
    assert re.fullmatch(r"GL[1-9]\d\d", rule.id)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert entry.path.stem == rule.name.replace("-", "_")
    assert entry.family, "rules lie in the folder of their family"
    assert rule.summary
    assert not rule.summary.endswith("\n")
    assert rule.severity in ("error", "warning", "info")
    assert rule.status in ("preview", "stable")
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)
    if isinstance(rule, Rule):
        assert rule.tokens
        assert all(isinstance(token, bytes) and len(token) >= 3 for token in rule.tokens)
    else:
        assert not rule.tokens, "deployments are found by their files"
        assert rule.check or rule.check_sglang


@by_rule
def test_the_file_is_of_a_size_to_read(entry: RuleEntry):
    assert 60 <= len(entry.path.read_text(encoding="utf-8").splitlines()) <= 250


@by_rule
def test_families_and_ids_agree(entry: RuleEntry):
    siblings = {other.rule.id[:3] for other in RULES if other.family == entry.family}
    assert siblings == {entry.rule.id[:3]}


@by_rule
def test_there_are_three_examples_of_each_kind(entry: RuleEntry):
    assert len(entry.rule.bad) >= 3
    assert len(entry.rule.good) >= 3
    names = [example.name for example in (*entry.rule.bad, *entry.rule.good)]
    assert len(set(names)) == len(names)


@examples("bad")
def test_a_bad_example_is_reported(entry: RuleEntry, example: Example, tree):
    findings = reported(entry, example, tree)
    assert findings, f"{entry.rule.id} is silent"
    named = {finding.buffer for finding in findings}
    assert set(example.buffers) <= named
    for finding in findings:
        assert (finding.name, finding.path in sources(example)) == (entry.rule.name, True)
        assert finding.message


@examples("good")
def test_a_good_example_is_not_reported(entry: RuleEntry, example: Example, tree):
    findings = reported(entry, example, tree)
    assert [(finding.path, finding.line, finding.message) for finding in findings] == []


@examples("bad")
def test_the_tokens_let_bad_examples_through(entry: RuleEntry, example: Example):
    text = "\n".join(sources(example).values()).encode()
    assert any(token in text for token in entry.rule.tokens)


def sources(example: Example) -> dict[str, str]:
    return {"example.py": example.source} if isinstance(example.source, str) else example.source


def reported(entry: RuleEntry, example: Example, tree):
    """What the rule says of the example: the real engine on real files, as a user would see it by default."""
    tree(sources(example))
    only_it = registry.Registry([entry])
    outcome = run_check(["."], CheckOptions(cache=False, jobs=1), rules=only_it)
    assert not outcome.report.errors
    return [finding for finding in outcome.report.findings if finding.rule == entry.rule.id]
