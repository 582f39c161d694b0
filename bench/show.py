"""Findings of a release with the code that they are about, for a person who has to judge them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from graphlint.finding import Finding, TracePoint


def render(finding: Finding, root: Path, context: int = 10) -> str:
    """The finding, its witness, and `context` lines around each step from writer to reader; `root` holds the paths."""
    head = f"{finding.rule} {finding.name}  {finding.severity}, {finding.confidence} confidence  {finding.fingerprint}"
    parts = ["=" * 100, head, f"{finding.path}:{finding.line}  {finding.symbol}", f"  {finding.message}"]
    if finding.witness:
        parts.append(f"  witness: {finding.witness.text}")
    for path, start, stop, marks in excerpts(finding, context):
        parts.append(f"--- {path}:{start}")
        parts += _lines(root / path, start, stop, marks)
    if finding.fix:
        parts.append(f"  fix ({finding.fix.applicability}): {finding.fix.title}")
    return "\n".join(parts) + "\n"


def excerpts(finding: Finding, context: int) -> Iterator[tuple[str, int, int, dict[int, list[str]]]]:
    """(path, first line, last line, labels by line) in the order of the trace; steps whose surroundings touch share one excerpt."""
    steps = list(finding.trace)
    if not any((step.path, step.line) == (finding.path, finding.line) for step in steps):
        steps.insert(0, TracePoint(finding.path, finding.line, "reported here"))
    blocks: list[tuple[str, int, int, dict[int, list[str]]]] = []
    for step in steps:
        start, stop = max(1, step.line - context), step.line + context
        for number, (path, first, last, marks) in enumerate(blocks):
            if path == step.path and start <= last + 1 and stop >= first - 1:
                marks.setdefault(step.line, []).append(step.label)
                blocks[number] = (path, min(first, start), max(last, stop), marks)
                break
        else:
            blocks.append((step.path, start, stop, {step.line: [step.label]}))
    yield from blocks


def _lines(path: Path, start: int, stop: int, marks: dict[int, list[str]]) -> Iterator[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        yield f"  cannot read it: {error.strerror}"
        return
    for number in range(start, min(stop, len(text)) + 1):
        labels = "; ".join(marks.get(number, ()))
        yield f"{'>' if labels else ' '}{number:6} {text[number - 1]}{f'    <== {labels}' if labels else ''}"
