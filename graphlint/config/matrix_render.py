"""The support matrix as text, Markdown, JSON and HTML."""

from __future__ import annotations

import html
from typing import Any

from graphlint.config.matrix import Change, Matrix, Row, condition_text
from graphlint.config.modes import LETTER
from graphlint.finding import Grid

_LEGEND = (
    "A = ALWAYS, U = UNIFORM_BATCH, S = UNIFORM_SINGLE_TOKEN_DECODE, N = NEVER; several where a condition decides. "
    "Results assume compilation mode VLLM_COMPILE and default splitting ops; speculative: two or more tokens per request."
)
_TONES = {"A": "good", "U": "good", "S": "part", "N": "bad", "-": "", "?": ""}
_COLOURS = {"A": "#b7e4c7", "U": "#d8f3dc", "S": "#fff3bf", "N": "#ffc9c9", "-": "#e9ecef", "?": "#e9ecef"}


def _cells(row: Row) -> list[str]:
    default, full = row.results["FULL_AND_PIECEWISE"], row.results["FULL"]
    return [row.name, row.letters, default[0] or "-", default[1] or "-", full[0] or "-", full[1] or "-"]


_HEAD = ["backend", "support", "default, plain", "default, speculative", "FULL, plain", "FULL, speculative"]


def _table(rows: list[list[str]], head: list[str]) -> list[str]:
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in [head, *rows]]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return lines


def render_text(matrix: Matrix, conditions: bool = True) -> str:
    """Tables for a terminal."""
    lines = [f"CUDA-graph support of {matrix.source}", _LEGEND, ""]
    for kind, title in (
        ("attention", "Attention backends"),
        ("mamba", "Mamba and linear-attention backends"),
        ("builder", "Builders behind no name that join the minimum"),
    ):
        rows = [r for r in matrix.rows if r.kind == kind]
        if rows:
            lines += [title, *_table([_cells(r) for r in rows], _HEAD), ""]
    if conditions:
        conditional = [r for r in matrix.rows if any(s.when for s in r.levels)]
        if conditional:
            lines.append("Conditions")
            for row in conditional:
                lines.append(f"  {row.name}")
                lines += [f"    {LETTER.get(s.level, '?')}  {condition_text(s) or 'otherwise'}  ({s.at})" for s in row.levels]
            lines.append("")
    tables = matrix.tables
    if tables.optimization:
        lines.append("Defaults: " + ", ".join(f"-O{k} {v}" for k, v in sorted(tables.optimization.items())))
    lines.append(f"Attention ops (all must be split points): {', '.join(tables.attention_ops) or 'none'}")
    if tables.break_points:
        lines.append(f"Break points of breakable graphs: {', '.join(p.removeprefix('vllm.') for p in tables.break_points)}")
    if tables.breakable_archs:
        lines.append(f"Breakable by default: {', '.join(tables.breakable_archs)}")
    if tables.breakable_archs_rocm and tables.breakable_archs_rocm != tables.breakable_archs:
        lines.append(f"Breakable by default on ROCm: {', '.join(tables.breakable_archs_rocm)}")
    if tables.v2_archs:
        lines.append(f"Model runner V2 by default: {', '.join(tables.v2_archs)}")
    if tables.piecewise_connectors:
        lines.append("KV connectors that force PIECEWISE: " + ", ".join(f"{k} ({v})" for k, v in tables.piecewise_connectors.items()))
    lines.append(f"Known: {len(tables.flags)} options, {len(tables.env)} environment variables, {len(tables.methods)} speculative methods")
    return "\n".join(lines) + "\n"


def render_markdown(matrix: Matrix) -> str:
    """One table with places, for documents and pull requests."""
    lines = [
        f"# CUDA-graph support of {matrix.source}",
        "",
        _LEGEND,
        "",
        "| " + " | ".join([*_HEAD, "declared at"]) + " |",
        "|" + "---|" * 7,
    ]
    for row in matrix.rows:
        places = ", ".join(dict.fromkeys(s.at for s in row.levels))
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in [*_cells(row), places]) + " |")
    return "\n".join(lines) + "\n"


def row_json(row: Row) -> dict[str, Any]:
    """One backend as data."""
    return {
        "name": row.name,
        "kind": row.kind,
        "builder": row.builder,
        "note": row.note,
        "support": [{"level": s.level, "when": list(s.when), "at": s.at} for s in row.levels],
        "results": {mode: {"plain": plain, "speculative": spec} for mode, (plain, spec) in row.results.items()},
    }


def matrix_json(matrix: Matrix) -> dict[str, Any]:
    """Everything as data."""
    tables = matrix.tables
    return {
        "schema": 1,
        "version": matrix.version,
        "source": matrix.source,
        "backends": [row_json(r) for r in matrix.rows],
        "optimization": tables.optimization,
        "attention_ops": list(tables.attention_ops),
        "break_points": list(tables.break_points),
        "breakable_architectures": list(tables.breakable_archs),
        "breakable_architectures_rocm": list(tables.breakable_archs_rocm),
        "v2_architectures": list(tables.v2_archs),
        "piecewise_connectors": tables.piecewise_connectors,
        "options": sorted(tables.flags),
        "environment": list(tables.env),
        "speculative_methods": list(tables.methods),
    }


def grid(matrix: Matrix) -> Grid:
    """The matrix as a table for a page: a row a backend, coloured by how much of a mode is left."""
    rows = []
    for row in matrix.rows:
        worst = next((letter for letter in "NSUA" if letter in row.letters), "-")
        rows.append(((row.name, ""), (row.letters, _TONES[worst]), *((cell, _class(cell)) for cell in _cells(row)[2:])))
    return Grid(f"CUDA-graph support of {matrix.source}", _LEGEND, tuple(_HEAD), tuple(rows))


def render_html(matrix: Matrix) -> str:
    """A self-contained page with a coloured grid; conditions and places on hover and below."""
    rows = []
    for row in matrix.rows:
        letters = row.letters
        worst = next((c for c in "NSUA" if c in letters), "-")
        title = html.escape("\n".join(f"{s.level}: {condition_text(s) or 'always'} ({s.at})" for s in row.levels))
        cells = _cells(row)
        results = "".join(f'<td class="{_class(c)}">{html.escape(c)}</td>' for c in cells[2:])
        rows.append(
            f'<tr class="{row.kind}"><th>{html.escape(row.name)}</th>'
            f'<td style="background:{_COLOURS[worst]}" title="{title}">{html.escape(letters)}</td>{results}</tr>'
        )
    head = "".join(f"<th>{h}</th>" for h in _HEAD)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>CUDA-graph support</title><style>'
        "body{font:14px system-ui,sans-serif;margin:2em;max-width:100em}table{border-collapse:collapse}"
        "td,th{border:1px solid #ced4da;padding:.25em .6em;text-align:left}"
        "thead th{position:sticky;top:0;background:#fff}.good{background:#d8f3dc}.part{background:#fff3bf}.bad{background:#ffc9c9}"
        "@media(prefers-color-scheme:dark){body{background:#1b1e21;color:#dee2e6}thead th{background:#1b1e21}"
        "td[style],.good,.part,.bad{color:#212529}}"
        f"</style><h1>CUDA-graph support of {html.escape(matrix.source)}</h1><p>{html.escape(_LEGEND)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></html>\n"
    )


def _class(result: str) -> str:
    if "startup" in result or result in ("NONE", "-"):
        return "bad"
    return "good" if result in ("FULL", "FULL_AND_PIECEWISE") else "part"


def render_changes(old: Matrix, new: Matrix, changes: list[Change], markdown: bool = False) -> str:
    """What changed between two releases, the levels first."""
    order = {"level": 0, "condition": 1, "backend": 2, "default": 3}
    changes = sorted(changes, key=lambda c: order.get(c.what, 9))
    if markdown:
        lines = [f"# From {old.source} to {new.source}", "", "| what | name | before | after |", "|---|---|---|---|"]
        lines += ["| " + " | ".join(str(c).replace("|", "\\|") for c in change) + " |" for change in changes]
        return "\n".join(lines) + "\n"
    lines = [f"From {old.source} to {new.source}: {len(changes)} changes", ""]
    shown: list[list[str]] = []
    for change in changes:
        shown.append([change.what, change.name, _clip(change.before), _clip(change.after)])
    return "\n".join([*lines, *(_table(shown, ["what", "name", "before", "after"]) if shown else ["nothing changed"])]) + "\n"


def _clip(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
