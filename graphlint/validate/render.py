"""Verdicts as text, JSON and one HTML page. No heavy imports: rich is not needed for this."""

from __future__ import annotations

import html
import json
import shutil
import textwrap
from typing import Any

import msgspec

import graphlint
from graphlint.validate.verdict import RESULT_MEANING, Observation, Verdict

_MARK = {"confirmed": "✗", "refuted": "✓", "not-reproduced": "?", "unsupported": "-"}
_FIX = {"verified": "fix verified", "failed": "fix does not hold", "not-run": "fix not run", "none": ""}


def lanes(seen: Observation, widest: int = 48) -> str:
    """One character a lane: `█` live, `·` padded and right, `!` padded with a fault. Longer batches end in `…`."""
    faulty = set(seen.lanes)
    marks = ["█" if lane < seen.live else "!" if lane in faulty else "·" for lane in range(seen.padded)]
    return "".join(marks[:widest]) + ("…" if len(marks) > widest else "")


def as_text(verdicts: list[Verdict], verbose: bool = False) -> str:
    """A block a verdict: result, reason, the first schedule with a fault and the same schedule corrected, what it ran on."""
    width = min(max(shutil.get_terminal_size((110, 20)).columns, 60), 140)
    blocks = []
    for verdict in verdicts:
        head = f"{_MARK[verdict.result]} {verdict.result:<14} {verdict.subject}"
        head += f"  [{', '.join(verdict.rules)}]" if verdict.rules else ""
        lines = [head + (f"  ({_FIX[verdict.fix]})" if _FIX[verdict.fix] else "")]
        lines += textwrap.wrap(verdict.title, width, initial_indent="  ", subsequent_indent="  ") if verdict.title else []
        lines += textwrap.wrap(verdict.reason, width, initial_indent="  ", subsequent_indent="  ")
        lines += _table(verdict.observations if verbose else telling(verdict.observations), width)
        lines += [f"  {line}" for line in verdict.sanitizer.splitlines()]
        if verdict.evidence:
            seen = verdict.evidence
            packages = " ".join(
                f"{name} {version}" for name, version in seen.versions.items() if name in ("torch", "triton", "flashinfer-python")
            )
            lines.append(
                f"  {seen.device_name or seen.device}; {packages}; seed {', '.join(map(str, seen.seeds))}; {seen.seconds:.1f} s; "
                f"network: {seen.isolation.network}, files: {seen.isolation.files}"
            )
        blocks.append("\n".join(lines))
    counts = {result: sum(verdict.result == result for verdict in verdicts) for result in RESULT_MEANING}
    blocks.append(", ".join(f"{number} {result}" for result, number in counts.items() if number) or "nothing to validate")
    return "\n\n".join(blocks)


def telling(observations: list[Observation]) -> list[Observation]:
    """The first schedule with a fault, and each other variant on that schedule; without a fault the first schedule."""
    first = next((seen for seen in observations if seen.fault), None)
    if first is None:
        return observations[:1]
    return [seen for seen in observations if seen.case == first.case]


def _table(observations: list[Observation], width: int) -> list[str]:
    if not observations:
        return []
    variant = max(len(seen.variant) for seen in observations)
    lines = ["  lanes: █ live, · padded and right, ! padded with a fault"]
    for seen in observations:
        state = "fault" if seen.fault else "ok   " if seen.live_exact else "live lanes wrong"
        lines.append(f"    {seen.variant:<{variant}}  {state}  {lanes(seen)}")
        lines += textwrap.wrap(f"{seen.case}: {seen.text}", width, initial_indent="      ", subsequent_indent="      ")
    return lines


def as_data(verdicts: list[Verdict]) -> dict[str, Any]:
    """The JSON document, schema 1."""
    return {"schema": 1, "tool": {"name": "graphlint", "version": graphlint.__version__}, "verdicts": msgspec.to_builtins(verdicts)}


def as_json(verdicts: list[Verdict]) -> str:
    """`as_data` as text."""
    return json.dumps(as_data(verdicts), indent=2, ensure_ascii=False)


_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
h2{margin:2rem 0 .2rem;font-size:1.1rem}code{font-size:.9em}.confirmed{color:#b3261e}.refuted{color:#1a7f37}
.lane{display:inline-block;width:14px;height:18px;margin:0 1px 1px 0;border-radius:2px;vertical-align:middle}
.live{background:#3b6fd4}.pad{background:#d0d7de}.bad{background:#d1242f}table{border-collapse:collapse;width:100%}
td{padding:.25rem .6rem .25rem 0;vertical-align:top;border-top:1px solid #eaecef}small,.dim{color:#57606a}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}.pad{background:#484f58}td{border-color:#30363d}small,.dim{color:#9198a1}}"""


def as_html(verdicts: list[Verdict]) -> str:
    """A page that needs nothing else: the lanes of each schedule as a row of squares."""
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>graphlint validate</title><style>{_STYLE}</style>",
        "<h1>graphlint validate</h1><p><span class='lane live'></span> live <span class='lane pad'></span> padded, right",
        "<span class='lane bad'></span> padded, fault</p>",
    ]
    for verdict in verdicts:
        fix = f", {_FIX[verdict.fix]}" if _FIX[verdict.fix] else ""
        parts.append(
            f"<h2><span class='{verdict.result}'>{verdict.result}</span>{fix}: <code>{html.escape(verdict.subject)}</code></h2>"
            f"<p>{html.escape(verdict.title)}<br>{html.escape(verdict.reason)}</p><table>"
        )
        for seen in verdict.observations:
            faulty = set(seen.lanes)
            squares = "".join(
                f"<span class='lane {'live' if lane < seen.live else 'bad' if lane in faulty else 'pad'}' title='lane {lane}'></span>"
                for lane in range(min(seen.padded, 256))
            )
            parts.append(
                f"<tr><td>{html.escape(seen.variant)}<td>{squares}<td>{html.escape(seen.case)}<br><small>{html.escape(seen.text)}</small>"
            )
        parts.append("</table>")
        if verdict.sanitizer:
            parts.append(f"<pre>{html.escape(verdict.sanitizer)}</pre>")
        if verdict.evidence:
            seen_with = verdict.evidence
            text = f"{seen_with.device_name}; {seen_with.versions}; seeds {seen_with.seeds}; {seen_with.date}; {seen_with.seconds:.1f} s"
            parts.append(f"<p class=dim>{html.escape(text)}</p>")
    return "\n".join(parts) + "</html>\n"
