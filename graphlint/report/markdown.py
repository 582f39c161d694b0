"""Markdown, for a comment on a pull request or the summary of a CI job."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from graphlint.report.frame import frame
from graphlint.report.summary import summary
from graphlint.report.text import labels_of

if TYPE_CHECKING:
    from graphlint.finding import Finding
    from graphlint.runner import Outcome
    from graphlint.source.files import SourceText

FOR_PEOPLE = False
_MARKUP = re.compile(r"([\\*_\[\]<>#|~])")


def render(outcome: Outcome, *, color: bool) -> str:
    """The summary, a table of the rules, then each finding folded under its message."""
    report = outcome.report
    out = ["## graphlint", "", summary(outcome), ""]
    if report.errors:
        out += ["### Could not be checked", ""]
        for error in report.errors:
            place = f"`{error.path}{f':{error.line}' if error.line else ''}`: " if error.path else ""
            out.append(f"- {place}{_escape(error.message)}")
        out.append("")
    counts = Counter((finding.rule, finding.name, finding.severity) for finding in report.findings)
    if counts:
        out += ["| rule | | severity | findings |", "|---|---|---|---:|"]
        out += [f"| {rule} | {name} | {severity} | {number} |" for (rule, name, severity), number in sorted(counts.items())]
        out.append("")
    for finding in report.findings:
        out += _finding(finding, outcome.sources)
    return "\n".join(out)


def _finding(finding: Finding, sources: SourceText) -> list[str]:
    code = frame(labels_of(finding), sources.lines, lambda _, text: text)
    longest = max((len(run) for line in code for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    out = [
        f"### {finding.severity} {finding.rule}: {_escape(finding.message)}",
        "",
        f"`{finding.path}:{finding.line}`" + (f" in `{finding.symbol}`" if finding.symbol else "") + f", {finding.confidence} confidence",
        "",
    ]
    out += [f"{number}. `{point.path}:{point.line}` {_escape(point.label)}" for number, point in enumerate(finding.trace, 1)]
    out += ["", "<details><summary>Code</summary>", "", f"{fence}text", *code, fence, "", "</details>", ""]
    if finding.witness is not None and finding.witness.text:
        out += [f"**Example.** {_escape(finding.witness.text)}", ""]
    if finding.fix is not None:
        out += [f"**Fix ({finding.fix.applicability}).** {_escape(finding.fix.title)}", ""]
    return out


def _escape(text: str) -> str:
    """Text as Markdown shows it, on one line. What stands in backticks is code already and stays."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # an odd backtick opens nothing
        return _MARKUP.sub(r"\\\1", "\\`".join(parts))
    return "`".join(part if number % 2 else _MARKUP.sub(r"\\\1", part) for number, part in enumerate(parts))
