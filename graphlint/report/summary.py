"""The last line that a person reads, shared by the formats for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from graphlint.finding import SEVERITIES

if TYPE_CHECKING:
    from graphlint.runner import Outcome


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def summary(outcome: Outcome) -> str:
    """What was found, in how many files, and what is not shown."""
    findings, stats = outcome.report.findings, outcome.report.stats
    around = f" (read {outcome.context} more to understand them)" if outcome.context else ""
    checked = f"checked {counted(stats.files, 'file')}{around} in {stats.seconds:.1f} s"
    if findings:
        by_severity = Counter(finding.severity for finding in findings)
        kinds = ", ".join(
            counted(by_severity[level], level) if level != "info" else f"{by_severity[level]} info"
            for level in reversed(SEVERITIES) if by_severity[level]
        )
        files = len({finding.path for finding in findings})
        text = f"Found {counted(len(findings), 'problem')} ({kinds}) in {counted(files, 'file')}; {checked}"
    else:
        text = f"Found no problems; {checked}"
    notes = []
    if outcome.report.errors:
        notes.append(f"{counted(len(outcome.report.errors), 'error')} on the way, see above")
    if outcome.hidden:
        notes.append(f"{outcome.hidden} below the confidence or severity asked for")
    if outcome.baseline is not None and outcome.baseline.known:
        notes.append(f"{outcome.baseline.known} known from the baseline")
    if outcome.suppressed:
        notes.append(f"{outcome.suppressed} suppressed by comments")
    return text + (f" ({'; '.join(notes)})" if notes else "") + "."
