"""Recall on real bugs and noise on releases.

A bug counts as found when its bad release has a finding in the bug's file and symbols (or within 15 lines of its lines) that the good
release no longer has under the same rule, symbol and buffer. `by kind` counts those found by a rule whose subject the bug is: a hit of
another rule at the right place may be luck.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from bench.bugs import Bug
from bench.checker import Checker
from bench.releases import Release
from graphlint.finding import Finding

LINES_NEAR = 15
OUTSIDE = "(outside static reach)"


class BugScore(msgspec.Struct, frozen=True):
    """What became of one bug."""

    id: str
    kind: str
    project: str
    bad: str
    good: str
    reach: str | None
    found: bool
    #: found by a rule whose subject this bug is; None where the catalogue names no rule
    by_kind: bool | None
    rules: tuple[str, ...]
    #: reported in the bad release, and just the same in the good one
    still_reported: bool


class Noise(msgspec.Struct, frozen=True):
    """How much a release reports in all."""

    release: str
    findings: int
    by_rule: dict[str, int]
    by_confidence: dict[str, int]
    errors: int
    seconds: float


def concerns(finding: Finding, bug: Bug, *, near_lines: bool) -> bool:
    """Whether a finding lies where the bug is."""
    if finding.path not in (bug.file, *bug.also_files):
        return False
    parts = re.split(r"[.:]", finding.symbol)
    for symbol in bug.symbols:
        want = symbol.split(".")
        if any(parts[start : start + len(want)] == want for start in range(len(parts))):
            return True
    return near_lines and any(abs(line - finding.line) <= LINES_NEAR for line in bug.lines)


def identity(finding: Finding) -> tuple[str, str, str | None]:
    """What makes a finding the same in two releases."""
    return finding.rule, finding.symbol, finding.buffer


def score_bug(bug: Bug, bad: Iterable[Finding], good: Iterable[Finding]) -> BugScore:
    """Judge one bug by the findings of its two releases."""
    before = [finding for finding in bad if concerns(finding, bug, near_lines=True)]
    after = {identity(finding) for finding in good if concerns(finding, bug, near_lines=False)}
    hits = [finding for finding in before if identity(finding) not in after]
    rules = tuple(sorted({finding.rule for finding in hits}))
    return BugScore(
        id=bug.id, kind=bug.kind, project=bug.project, bad=bug.bad, good=bug.good, reach=bug.reach, found=bool(hits),
        by_kind=bool(set(rules) & set(bug.rules)) if bug.rules else None, rules=rules, still_reported=bool(before) and not hits,
    )


def score_bugs(bugs: Iterable[Bug], checker: Checker) -> list[BugScore]:
    """Judge bugs one after the other; each release is checked once."""
    return [
        score_bug(bug, checker.findings(Release(bug.project, bug.bad)), checker.findings(Release(bug.project, bug.good)))
        for bug in bugs
    ]


def noise(release: Release, checker: Checker) -> Noise:
    """Count what one release reports."""
    report = checker.report(release)
    return Noise(
        release=str(release),
        findings=len(report.findings),
        by_rule=dict(sorted(Counter(finding.rule for finding in report.findings).items())),
        by_confidence=dict(sorted(Counter(finding.confidence for finding in report.findings).items())),
        errors=len(report.errors),
        seconds=report.stats.seconds,
    )


def recall(scores: Iterable[BugScore]) -> tuple[int, int]:
    """(found, all) of the bugs that source alone can show."""
    reachable = [score for score in scores if score.reach != "no"]
    return sum(score.found for score in reachable), len(reachable)


def by_kind_of_bug(scores: Iterable[BugScore]) -> list[tuple[str, int, int, int]]:
    """(kind, found, found by a rule of that kind, all), sorted; those out of reach in a row of their own at the end."""
    groups: dict[str, list[BugScore]] = {}
    for score in scores:
        groups.setdefault(OUTSIDE if score.reach == "no" else score.kind, []).append(score)
    return [
        (kind, sum(score.found for score in group), sum(bool(score.by_kind) for score in group), len(group))
        for kind, group in sorted(groups.items(), key=lambda item: (item[0] == OUTSIDE, item[0]))
    ]
