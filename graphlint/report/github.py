"""Annotations of GitHub Actions: workflow commands that mark lines of a pull request.

GitHub shows ten errors and ten warnings a step, so the worst come first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphlint.finding import SEVERITIES, Finding, RunError
from graphlint.report.places import in_repository

if TYPE_CHECKING:
    from graphlint.runner import Outcome

FOR_PEOPLE = False
COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(outcome: Outcome, *, color: bool) -> str:
    """One line a finding; what could not be checked is an error too."""
    findings = sorted(outcome.report.findings, key=lambda finding: -SEVERITIES.index(finding.severity))
    return "".join([*map(_error, outcome.report.errors), *map(_finding, findings)])


def _finding(finding: Finding) -> str:
    properties = {
        "title": f"{finding.rule} {finding.name}", "file": in_repository(finding.path), "line": finding.line,
        "endLine": max(finding.end_line, finding.line),
    }
    if finding.end_line == finding.line and finding.end_column > finding.column:  # GitHub takes columns within one line only
        properties |= {"col": finding.column, "endColumn": finding.end_column}
    text = [finding.message]
    text += [f"{number}. {point.path}:{point.line}: {point.label}" for number, point in enumerate(finding.trace, 1)]
    if finding.witness is not None and finding.witness.text:
        text.append(f"Example: {finding.witness.text}")
    return _command(COMMANDS[finding.severity], properties, "\n".join(text))


def _error(error: RunError) -> str:
    properties: dict[str, object] = {"title": f"graphlint: {error.kind} error"}
    if error.path:
        properties["file"] = in_repository(error.path)
        if error.line:
            properties["line"] = error.line
    return _command("error", properties, error.message)


def _command(name: str, properties: dict[str, object], message: str) -> str:
    shown = ",".join(f"{key}={_escape(str(value)).replace(':', '%3A').replace(',', '%2C')}" for key, value in properties.items())
    return f"::{name} {shown}::{_escape(message)}\n"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
