"""Edits into text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence

from graphlint.finding import Edit, Finding


class Overlap(ValueError):
    """Two edits want the same place."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """`text` with edits of one file. Raises `Overlap` where two touch the same place, and ValueError for a place that is not there."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    # a line break of Windows belongs to the end of the line: inserted lines get the same
    crlf = "\r\n" in text
    spans = []
    for edit in edits:
        if not (0 < edit.line < len(starts) and 0 < edit.end_line <= len(starts)):
            raise ValueError(f"{edit.path}:{edit.line} is not in the file")
        first = min(starts[edit.line - 1] + edit.column - 1, len(text))
        last = min(starts[edit.end_line - 1] + edit.end_column - 1, len(text))
        spans.append((first, last, edit.text.replace("\n", "\r\n") if crlf else edit.text))
    spans.sort(key=lambda span: span[:2])
    for number in range(1, len(spans)):
        if spans[number][0] <= spans[number - 1][1]:  # edits that touch count too: their order would be a guess
            raise Overlap("two edits want the same place")
    for first, last, new in reversed(spans):
        text = text[:first] + new + text[last:]
    return text


def one_round(
    findings: Sequence[Finding], read: Callable[[str], str], allowed: Callable[[Finding], bool]
) -> tuple[dict[str, str], list[Finding]]:
    """(changed texts by path, findings whose fix went in): every fix that is allowed, fits beside those before it, and still parses."""
    texts: dict[str, list[Edit]] = {}
    done: list[Finding] = []
    result: dict[str, str] = {}
    for finding in findings:
        if finding.fix is None or not finding.fix.edits or not allowed(finding):
            continue
        trial = {path: list(edits) for path, edits in texts.items()}
        for edit in finding.fix.edits:
            trial.setdefault(edit.path, []).append(edit)
        touched = {edit.path for edit in finding.fix.edits}
        try:
            changed = {path: apply_edits(read(path), trial[path]) for path in touched}
            for path, text in changed.items():
                ast.parse(text, path)
        except (ValueError, OSError, SyntaxError):
            continue  # overlaps one that is in already: the next round, over the new text, has its turn
        texts = trial
        result.update(changed)
        done.append(finding)
    return result, done
