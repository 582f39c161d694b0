"""Every fix offered for a bad example of a rule removes the finding, leaves source that parses, and has nothing left to do afterwards."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from graphlint import registry
from graphlint.api import Example, Rule
from graphlint.finding import Finding
from graphlint.fix import RULES, attach
from graphlint.fix.apply import apply_edits
from graphlint.registry import Registry, RuleEntry
from graphlint.runner import run_check
from graphlint.settings import CheckOptions
from graphlint.source.files import SourceText

CASES = [
    pytest.param(entry, example, id=f"{entry.rule.id}-{example.name}")
    for entry in registry.load() if isinstance(entry.rule, Rule) and entry.rule.id in RULES for example in entry.rule.bad
]


def check(entry: RuleEntry) -> list[Finding]:
    options = CheckOptions(jobs=1, cache=False, min_confidence="low")
    findings = run_check(["."], options, rules=Registry([entry])).report.findings
    attach(findings, SourceText().lines)
    return findings


@pytest.mark.parametrize(("entry", "example"), CASES)
def test_the_fix_removes_its_finding_parses_and_is_idempotent(
    entry: RuleEntry, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sources = {"engine.py": example.source} if isinstance(example.source, str) else example.source
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    findings = check(entry)
    assert findings
    for finding in findings:
        assert finding.fix is not None, finding.message
        for path in {edit.path for edit in finding.fix.edits}:
            before = (tmp_path / path).read_text()
            after = apply_edits(before, [edit for edit in finding.fix.edits if edit.path == path])
            ast.parse(after)
            kept = [line for line in before.split("\n") if line.strip() and line not in after.split("\n")]
            assert len(kept) <= 1, "a fix inserts statements or replaces one; the rest stays as it is"
            (tmp_path / path).write_text(after)
        break
    left = check(entry)
    assert finding.message not in [one.message for one in left], after
    assert not left, after
