"""One line a finding: `path:line:column: severity[RULE] message`, which editors and `grep` understand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphlint.report.summary import summary

if TYPE_CHECKING:
    from graphlint.runner import Outcome

FOR_PEOPLE = True


def render(outcome: Outcome, *, color: bool) -> str:
    """All findings, then the summary line."""
    lines = []
    for f in outcome.report.findings:
        symbol = f" ({f.symbol})" if f.symbol else ""
        lines.append(f"{f.path}:{f.line}:{f.column}: {f.severity}[{f.rule}] {' '.join(f.message.split())}{symbol}")
    return "\n".join([*lines, summary(outcome)]) + "\n"
