"""One self-contained page: findings by file or by rule, the code with the trace drawn through it, the batch schedule as a picture.

The page loads nothing from anywhere and works without scripts; the script adds grouping, filters and search.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from graphlint import __version__
from graphlint.finding import SEVERITIES, Finding, Grid, Proof, Witness
from graphlint.report.excerpt import RAIL, ROW, Row, excerpt, rail
from graphlint.report.prose import inline, to_html
from graphlint.report.summary import summary

if TYPE_CHECKING:
    from graphlint.rule_pages import Page
    from graphlint.runner import Outcome

FOR_PEOPLE = False
#: cells drawn of one step of a schedule; longer ones are cut
MAX_LANES = 24
#: the browser itself sees to it that nothing is loaded
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def render(outcome: Outcome, *, color: bool) -> str:
    """The whole page."""
    report = outcome.report
    style = files("graphlint.report").joinpath("html.css").read_text("utf-8")
    script = files("graphlint.report").joinpath("html.js").read_text("utf-8")
    count = len(report.findings)
    body = [
        f"<header><h1>graphlint</h1><p class=summary>{escape(summary(outcome))}</p>{_tiles(outcome)}</header>",
        _errors(outcome),
        _index(outcome),
        _controls() if count > 1 else "",
        f"<main id=findings>{''.join(_finding(finding, number, outcome) for number, finding in enumerate(report.findings, 1))}</main>",
        "" if count else "<p class=clean>No problems found.</p>",
        "".join(_grid(grid) for grid in outcome.grids),
        _rules(outcome),
        f"<footer>graphlint {escape(__version__)}</footer>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>graphlint: {count} finding{'' if count == 1 else 's'}</title>\n<style>\n"
        f":root {{ --row: {ROW}px; --rail: {RAIL}px }}\n{style}</style></head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + f"\n<script>\n{script}</script>\n</body></html>\n"
    )


def _tiles(outcome: Outcome) -> str:
    counts = Counter(finding.severity for finding in outcome.report.findings)
    tiles = [
        (counts["error"], "errors", "error"), (counts["warning"], "warnings", "warning"), (counts["info"], "info", "info"),
        (outcome.report.stats.files, "files checked", "plain"),
    ]
    return "<ul class=tiles>" + "".join(f"<li class={kind}><b>{number}</b> {name}</li>" for number, name, kind in tiles) + "</ul>"


def _errors(outcome: Outcome) -> str:
    if not outcome.report.errors:
        return ""
    items = []
    for error in outcome.report.errors:
        place = f"<code>{escape(error.path)}{f':{error.line}' if error.line else ''}</code> " if error.path else ""
        items.append(f"<li>{place}{inline(error.message)}</li>")
    return f"<section class=errors><h2>Could not be checked</h2><ul>{''.join(items)}</ul></section>"


def _index(outcome: Outcome) -> str:
    """Two tables, rules and files, whose rows lead to the first finding of each."""
    findings = outcome.report.findings
    if not findings:
        return ""
    first_of_rule: dict[str, int] = {}
    first_of_file: dict[str, int] = {}
    for number, finding in enumerate(findings, 1):
        first_of_rule.setdefault(finding.rule, number)
        first_of_file.setdefault(finding.path, number)
    by_rule = Counter(finding.rule for finding in findings)
    by_file = Counter(finding.path for finding in findings)
    names = {finding.rule: finding.name for finding in findings}
    rules = "".join(
        f'<tr><td><a href="#f{first_of_rule[rule]}">{escape(rule)}</a></td>'
        f"<td>{escape(names[rule])}</td><td class=number>{by_rule[rule]}</td></tr>"
        for rule in sorted(by_rule)
    )
    paths = "".join(
        f'<tr><td class=path><a href="#f{first_of_file[path]}">{_breakable(path)}</a></td>'
        f"<td class=number>{by_file[path]}</td></tr>"
        for path in sorted(by_file)
    )
    return (
        f"<section class=index><div><h2>By rule</h2><table>{rules}</table></div><div><h2>By file</h2><table>{paths}</table></div></section>"
    )


def _breakable(path: str) -> str:
    """A path that a narrow screen may break after a slash."""
    return escape(path).replace("/", "/<wbr>")


def _controls() -> str:
    boxes = "".join(f"<label><input type=checkbox value={level} checked> {level}</label>" for level in reversed(SEVERITIES))
    return (
        '<form class=controls hidden><input type=search placeholder="rule, file, buffer, text" aria-label="Search findings">'
        f"<span class=levels>{boxes}</span><label>group by <select><option>file<option>rule<option>severity</select></label>"
        "<output></output></form>"
    )


def _finding(finding: Finding, number: int, outcome: Outcome) -> str:
    rows, steps = excerpt(finding, outcome.sources)
    where = f"<code>{_breakable(finding.path)}:{finding.line}</code>"
    if finding.symbol:
        where += f" in <code>{_breakable(finding.symbol).replace('.', '.<wbr>')}</code>"
    parts = [
        f'<article id=f{number} class="{finding.severity}" data-rule="{escape(finding.rule)}" data-file="{escape(finding.path)}" '
        f'data-severity="{finding.severity}" data-name="{escape(finding.name)}">',
        f"<h3><a class=anchor href=#f{number}><span class=badge>{finding.severity}</span> {escape(finding.rule)}</a> "
        f"{inline(finding.message)}</h3>",
        f"<p class=where>{where} <span class=confidence>{finding.confidence} confidence</span></p>",
    ]
    if rows:
        parts.append(f"<div class=code>{rail(rows, steps)}<div class=lines>{''.join(_row(row) for row in rows)}</div></div>")
    if finding.trace:
        items = "".join(
            f"<li>{inline(point.label)} <code class=place>{_breakable(point.path)}:{point.line}</code></li>" for point in finding.trace
        )
        parts.append(f"<ol class=trace>{items}</ol>")
    if finding.witness is not None:
        parts.append(_witness(finding.witness))
    proof = outcome.proofs.get(finding.fingerprint)
    if proof is not None:
        parts.append(_proof(proof))
    if finding.fix is not None:
        kind = {"safe": "Safe fix", "unsafe": "Unsafe fix", "display": "Suggestion"}[finding.fix.applicability]
        edits = "".join(f"<pre class=edit>{escape(edit.text.strip(chr(10)))}</pre>" for edit in finding.fix.edits if edit.text.strip())
        parts.append(f"<div class=fix><b>{kind}:</b> {inline(finding.fix.title)}{edits}</div>")
    parts.append(f'<p class=more><a href="#rule-{escape(finding.rule)}">{escape(finding.name)}: why is this a bug?</a></p></article>')
    return "".join(parts)


def _row(row: Row) -> str:
    number = f"<i>{row.number}</i>" if row.number else "<i></i>"
    return f'<div class="row {row.kind}">{number}<span>{row.html or " "}</span></div>'


def _witness(witness: Witness) -> str:
    """The schedule: a strip of lanes a step, live ones filled, padded ones hollow, stale ones marked."""
    strips = []
    for number, step in enumerate(witness.steps, 1):
        live, padded = step.get("live"), step.get("padded")
        if not isinstance(live, int) or not isinstance(padded, int):
            continue
        last = number == len(witness.steps)
        stale = range(*witness.stale[:2]) if last and len(witness.stale) >= 2 else range(0)
        lanes = max(live, padded, stale.stop)
        cells = "".join(
            f'<b class="{"stale" if lane in stale else "live" if lane < live else "padded"}"></b>' for lane in range(min(lanes, MAX_LANES))
        )
        more = f"<span>+{lanes - MAX_LANES}</span>" if lanes > MAX_LANES else ""
        text = f"{live} live" + (f", padded to {padded}" if padded != live else "") + f" {step.get('unit', '')}"
        mode = f" ({step['mode']})" if step.get("mode") else ""
        strips.append(f"<tr><th>step {number}</th><td class=cells>{cells}{more}</td><td>{escape(text + mode)}</td></tr>")
    table = f"<table class=schedule>{''.join(strips)}</table>" if strips else ""
    return f"<div class=witness><b>Example.</b> {inline(witness.text)}{table}</div>"


def _proof(proof: Proof) -> str:
    """What the kernel did when it was run, a strip of lanes a variant: faulty lanes are marked."""
    rows = []
    for strip in proof.strips:
        lanes = max(strip.live, strip.padded)
        cells = "".join(
            f'<b class="{"stale" if lane in strip.faulty else "live" if lane < strip.live else "padded"}"></b>'
            for lane in range(min(lanes, MAX_LANES))
        )
        more = f"<span>+{lanes - MAX_LANES}</span>" if lanes > MAX_LANES else ""
        rows.append(f"<tr><th>{escape(strip.label)}</th><td class=cells>{cells}{more}</td><td>{escape(strip.text)}</td></tr>")
    table = f"<table class=schedule>{''.join(rows)}</table>" if rows else ""
    return f'<div class="proof {escape(proof.result)}"><b>Run: {escape(proof.result)}.</b> {inline(proof.reason)}{table}</div>'


def _grid(grid: Grid) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in grid.head)
    rows = "".join(
        "<tr>" + "".join(f'<td class="{tone}">{escape(text).replace("_", "_<wbr>")}</td>' for text, tone in row) + "</tr>"
        for row in grid.rows
    )
    return (
        f"<section class=grid><details><summary>{escape(grid.title)}</summary><p>{escape(grid.legend)}</p>"
        f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details></section>"
    )


def _rules(outcome: Outcome) -> str:
    """The pages of the rules that reported something."""
    if outcome.rules is None:
        return ""
    from graphlint.rule_pages import pages

    used = {finding.rule for finding in outcome.report.findings}
    shown = [page for page in pages(outcome.rules) if page.id in used]
    return f"<section class=rules><h2>The rules</h2>{''.join(_page(page) for page in shown)}</section>" if shown else ""


def _page(page: Page) -> str:
    title = f"<summary><b>{escape(page.id)}</b> {escape(page.name)}: {inline(page.summary)}</summary>"
    return f'<details id="rule-{escape(page.id)}">{title}<div class=page>{to_html(page.text, below=2)}</div></details>'
