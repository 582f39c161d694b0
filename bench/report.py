"""The measured figures as tables of docs/accuracy.md, so that none is copied by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

import graphlint
from bench.data import BENCH
from bench.mutants.score import MutantTable, table_rows
from bench.score import BugScore, Noise, by_kind_of_bug, recall
from bench.timing import Timing
from bench.triage import Triage

PAGE = BENCH.parent / "docs" / "accuracy.md"
BEGIN, END = "<!-- figures: begin (python -m bench all --docs) -->", "<!-- figures: end -->"


class Figures(msgspec.Struct, frozen=True):
    """One whole measurement."""

    bugs: list[BugScore]
    noise: list[Noise]
    triage: list[Triage]
    mutants: list[MutantTable]
    timing: dict[str, list[Timing]]


def write_docs(figures: Figures, page: Path = PAGE) -> Path:
    """Replace what stands between the markers of the page. ValueError when it has none."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page}: the lines {BEGIN!r} and {END!r} are missing")
    page.write_text(f"{before}{BEGIN}\n{render(figures)}\n{END}{after}", encoding="utf-8")
    return page


def render(figures: Figures) -> str:
    """All tables, as Markdown."""
    return "\n".join(_sections(figures))


def _sections(figures: Figures) -> Iterator[str]:
    found, of = recall(figures.bugs)
    yield f"Measured with graphlint {graphlint.__version__} on {os.cpu_count()} cores.\n\n### Real bugs\n"
    yield f"{found} of the {of} bugs that source can show are found.\n"
    yield _table(("Kind of bug", "Found", "By a rule about that kind", "Bugs"), by_kind_of_bug(figures.bugs))
    missed = [f"{one.id} ({one.kind}, {one.project} {one.bad})" for one in figures.bugs if not one.found and one.reach != "no"]
    yield f"\nMissed: {', '.join(missed) or 'none'}.\n\n### Findings per release\n"
    yield _table(
        ("Release", "Findings", "High confidence", "Medium", "Files with errors"),
        [
            (one.release, one.findings, one.by_confidence.get("high", 0), one.by_confidence.get("medium", 0), one.errors)
            for one in figures.noise
        ],
    )
    yield "\n### Judged findings\n"
    yield _table(
        ("Release", "True", "Latent", "False", "Not judged"),
        [(one.release, *one.counts.values(), len(one.untriaged)) for one in figures.triage],
    )
    yield "\n### Mutants\n"
    yield _table(
        ("Release", "Verdict", "Kind", "Noticed", "At the very place", "Mutants"),
        [(table.release, *row) for table in figures.mutants for row in table_rows(table.scores)],
    )
    yield "\n### Speed\n"
    yield _table(
        ("Release", "Run", "Median s", "Best s", "Worst s", "Peak MiB, all processes"),
        [
            (release, one.what, f"{one.median:.2f}", f"{one.best:.2f}", f"{one.worst:.2f}", f"{one.peak_mib:.0f}")
            for release, rows in figures.timing.items()
            for one in rows
        ],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in cells)
