"""The code of a finding as HTML rows, and the line drawn through the steps of its trace.

Every row has the same height, so that the drawing needs no script: a step's place is its row number times that height.
"""

from __future__ import annotations

import itertools
import re
from html import escape
from typing import TYPE_CHECKING

import msgspec

from graphlint.report.prose import inline
from graphlint.report.text import labels_of

if TYPE_CHECKING:
    from graphlint.finding import Finding
    from graphlint.report.frame import Label
    from graphlint.source.files import SourceText

#: height of a row and width of the drawing, in CSS pixels
ROW = 22
RAIL = 64
#: lines shown before and after each step
CONTEXT = 2
#: longer source lines are cut
MAX_WIDTH = 400
_TOKEN = re.compile(
    r"(?P<comment>#.*)|(?P<string>[rbfuRBFU]{0,2}(?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"))|(?P<number>\b\d[\w.]*)|(?P<decorator>^\s*@[\w.]+)"
    r"|(?P<keyword>\b(?:False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if"
    r"|import|in|is|lambda|nonlocal|not|or|pass|raise|return|self|try|while|with|yield)\b)"
)


class Row(msgspec.Struct, frozen=True):
    """One row: kind is `file`, `line`, `label`, `label primary` or `gap`. `number` is the source line's."""

    kind: str
    html: str
    number: int = 0


def excerpt(finding: Finding, sources: SourceText) -> tuple[list[Row], list[int]]:
    """The rows, and the row of each step in the order of the trace."""
    labels = labels_of(finding)
    primary = next(label for label in labels if label.primary)
    rows: list[Row] = []
    place: dict[int, int] = {}
    for path in dict.fromkeys([primary.path, *(label.path for label in labels)]):
        here = sorted((label for label in labels if label.path == path), key=lambda label: (label.line, label.column))
        rows.append(Row("file", escape(path)))
        lines = sources.lines(path)
        shown = sorted({
            number for label in here for number in range(label.line - CONTEXT, label.line + CONTEXT + 1) if 1 <= number <= len(lines)
        } | {label.line for label in here})
        previous = shown[0] - 1
        for number in shown:
            if number > previous + 1:
                rows.append(Row("gap", "…"))
            previous = number
            marks = [label for label in here if label.line == number]
            raw = lines[number - 1] if number <= len(lines) else ""
            rows.append(Row("line", _code(raw[:MAX_WIDTH], marks), number))
            for label in marks:
                if label.text:
                    place[id(label)] = len(rows)
                    rows.append(Row("label primary" if label.primary else "label", inline(label.text)))
    return rows, [place[id(label)] for label in labels if id(label) in place]


def _code(raw: str, marks: list[Label]) -> str:
    """A source line with its tokens coloured and the marked ranges wrapped."""
    kinds = ["" for _ in raw]
    for match in _TOKEN.finditer(raw):
        kind = match.lastgroup or ""
        for at in range(*match.span()):
            kinds[at] = kind
    marked = ["" for _ in raw]
    for label in sorted(marks, key=lambda one: one.primary):
        to_line_end = label.end_line > label.line or label.end_column <= 0
        first = max(label.column - 1, 0)
        if to_line_end and not raw[:first].strip():
            first = len(raw) - len(raw.lstrip())
        for at in range(first, len(raw) if to_line_end else min(label.end_column - 1, len(raw))):
            marked[at] = "m1" if label.primary else "m2"
    out, at = [], 0
    while at < len(raw):
        end = at
        while end < len(raw) and (kinds[end], marked[end]) == (kinds[at], marked[at]):
            end += 1
        classes = " ".join(name for name in (kinds[at], marked[at]) if name)
        text = escape(raw[at:end])
        out.append(f'<span class="{classes}">{text}</span>' if classes else text)
        at = end
    return "".join(out)


def rail(rows: list[Row], steps: list[int]) -> str:
    """The drawing: a numbered dot at each step and an arrow from each to the next."""
    height = len(rows) * ROW
    x = RAIL - 14
    parts = [f'<svg class=rail width={RAIL} height={height} viewBox="0 0 {RAIL} {height}" aria-hidden=true>']
    middle = [step * ROW + ROW // 2 for step in steps]
    for number, (start, end) in enumerate(itertools.pairwise(middle)):
        if start == end:
            continue
        bulge = 16 + min(number, 3) * 9
        down = 1 if end > start else -1
        stop = end - down * 2
        parts.append(f'<path d="M{x - 8} {start} C{x - 8 - bulge} {start} {x - 8 - bulge} {stop} {x - 12} {stop}"/>')
        parts.append(f'<path class=head d="M{x - 8} {stop} l-7 -4 v8 z"/>')
    for number, y in enumerate(middle, 1):
        kind = " class=primary" if "primary" in rows[steps[number - 1]].kind else ""
        parts.append(f"<circle{kind} cx={x} cy={y} r=8 /><text x={x} y={y + 4}>{number}</text>")
    return "".join(parts) + "</svg>"
