"""The table of `--statistics`: how often each rule reported."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphlint.runner import Outcome


def render(outcome: Outcome) -> str:
    """Rules with their counts, most frequent first; empty if nothing was found."""
    findings = outcome.report.findings
    counts = Counter((finding.rule, finding.name) for finding in findings)
    files = {key: len({f.path for f in findings if (f.rule, f.name) == key}) for key in counts}
    rows = sorted(counts, key=lambda key: (-counts[key], key))
    width = len(str(max(counts.values(), default=0)))
    return "".join(f"{counts[key]:>{width}}  {key[0]}  {key[1]}  ({files[key]} file{'s' if files[key] != 1 else ''})\n" for key in rows)
