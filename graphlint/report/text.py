"""The terminal form: message, code frame with the way from writer to reader, witness, fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from graphlint.finding import Finding
from graphlint.report.frame import Label, Style, frame
from graphlint.report.summary import summary

if TYPE_CHECKING:
    from graphlint.runner import Outcome
    from graphlint.source.files import SourceText

FOR_PEOPLE = True
SEVERITY_COLOURS = {"error": "bright_red", "warning": "yellow", "info": "bright_cyan"}
WRAP = 110


def render(outcome: Outcome, *, color: bool) -> str:
    """All findings with an empty line after each, then the summary line."""
    blocks = [render_finding(finding, outcome.sources, color=color) for finding in outcome.report.findings]
    return "".join(f"{block}\n\n" for block in blocks) + summary(outcome) + "\n"


def render_finding(finding: Finding, sources: SourceText, *, color: bool) -> str:
    """One finding, without a newline at its end."""
    severity_colour = SEVERITY_COLOURS[finding.severity]

    def style(kind: str, text: str) -> str:
        if not color:
            return text
        if kind == "place":
            return text
        if kind == "primary":
            return click.style(text, fg=severity_colour, bold=True)
        return click.style(text, fg="bright_blue", bold=kind == "gutter")

    head = f"{finding.severity}[{finding.rule}]"
    if color:
        head = click.style(head, fg=severity_colour, bold=True)
    message = click.style(finding.message, bold=True) if color else finding.message
    labels = labels_of(finding)
    lines = [f"{head}: {message}", *frame(labels, sources.lines, style)]
    width = max(len(str(label.line)) for label in labels)
    lines.append(f"{' ' * width} {style('gutter', '|')}")
    for name, value in notes_of(finding):
        lines += _note(name, value, width, style)
    return "\n".join(lines)


def labels_of(finding: Finding) -> list[Label]:
    """The finding's own range and its trace. Steps are numbered where there are several, since a frame sorts them by line."""
    labels = []
    merged = False
    for number, point in enumerate(finding.trace, 1):
        step = f"{number}. {point.label}" if len(finding.trace) > 1 else point.label
        if not merged and point.path == finding.path and point.line == finding.line:
            merged = True
            labels.append(_primary(finding, step))
        else:
            labels.append(Label(point.path, point.line, point.column, point.end_line or point.line, point.end_column, step, False))
    if not merged:
        labels.insert(0, _primary(finding, ""))
    return labels


def _primary(finding: Finding, text: str) -> Label:
    return Label(finding.path, finding.line, finding.column, finding.end_line or finding.line, finding.end_column, text, True)


def notes_of(finding: Finding) -> list[tuple[str, str]]:
    """What is said below the frame, as (name, text)."""
    notes = []
    if finding.symbol:
        notes.append(("in", finding.symbol + (f", buffer {finding.buffer}" if finding.buffer else "")))
    elif finding.buffer:
        notes.append(("buffer", finding.buffer))
    if finding.witness is not None and finding.witness.text:
        notes.append(("example", finding.witness.text))
    if finding.fix is not None:
        kind = {"safe": "safe fix", "unsafe": "unsafe fix", "display": "suggestion"}[finding.fix.applicability]
        notes.append((kind, finding.fix.title))
    notes.append(("rule", f"{finding.name}, {finding.confidence} confidence; `graphlint rule {finding.rule}` explains it"))
    return notes


def _note(name: str, value: str, width: int, style: Style) -> list[str]:
    import textwrap

    head = f"{' ' * width} {style('gutter', '=')} {name}: "
    plain = width + 5 + len(name)
    wrapped = textwrap.wrap(value, WRAP - plain, break_long_words=False, break_on_hyphens=False) or [""]
    return [head + wrapped[0], *(" " * plain + line for line in wrapped[1:])]
