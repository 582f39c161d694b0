"""The examples of every deployment rule are its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphlint.config.check import Options, check_files
from graphlint.config.gpu import parse_gpu
from graphlint.config.pack import load_rules
from graphlint.config.rules_api import DeploymentExample, DeploymentRule
from graphlint.config.situation import parse_assumptions
from graphlint.config.versions import parse_version
from graphlint.finding import Finding

RULES, ERRORS = load_rules()


def examples(kind: str) -> pytest.MarkDecorator:
    cases = [pytest.param(r, e, id=f"{r.id}-{e.name.replace(' ', '-')}") for r in RULES for e in getattr(r, kind)]
    return pytest.mark.parametrize(("rule", "example"), cases)


def reported(rule: DeploymentRule, example: DeploymentExample, folder: Path) -> list[Finding]:
    files = {"run.sh": example.source} if isinstance(example.source, str) else example.source
    for name, text in files.items():
        folder.joinpath(name).write_text(text)
    given = parse_assumptions(example.assume)
    if example.gpu:
        given.gpu = parse_gpu(example.gpu)
    # a file that states its version is judged by it, as for a user
    stated = any(word in text for text in files.values() for word in ("image:", "pip install", "sglang"))
    options = Options(given=given, version=None if stated else parse_version(example.version), rules=[rule])
    result = check_files([(name, text.encode()) for name, text in files.items()], options)
    assert not result.errors
    return [f for f in result.findings if f.rule == rule.id and f.confidence != "low"]


def test_all_rules_load():
    assert not ERRORS
    assert len(RULES) >= 23


@examples("bad")
def test_a_bad_example_is_reported(rule: DeploymentRule, example: DeploymentExample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    found = reported(rule, example, tmp_path)
    assert found, f"{rule.id} is silent"
    assert all(f.name == rule.name and f.message and f.line >= 1 for f in found)


@examples("good")
def test_a_good_example_is_not_reported(rule: DeploymentRule, example: DeploymentExample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert [f.message for f in reported(rule, example, tmp_path)] == []
