"""From a finding to the edits that remove it.

A fix is worked out from the finding and the source of the function it lies in; `ast` gives the places, and the edits insert whole
statements or replace one expression, so that every other byte of the file, comments and layout included, stays as it is.
Nothing heavy is imported: fixes are attached to the findings that are reported, in every format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from graphlint.finding import Finding, Fix

#: lines of a path, as `source.files.SourceText.lines` gives them
Lines = Callable[[str], Sequence[str]]
RULES = frozenset({"GL201", "GL202", "GL203", "GL301", "GL501", "GL502"})


def fix_of(finding: Finding, lines: Lines) -> Fix | None:
    """The change that removes `finding`, or None where no change is certain to."""
    if finding.rule not in RULES:
        return None
    from graphlint.fix import exits, kernel_tails, modes, pads, tails

    makers = {
        "GL201": pads.fix, "GL202": kernel_tails.fix, "GL203": exits.fix, "GL301": tails.fix, "GL501": modes.narrow, "GL502": modes.drop,
    }
    return makers[finding.rule](finding, lines)


def attach(findings: Iterable[Finding], lines: Lines) -> None:
    """Gives each finding its fix, where there is one and none is set. A source that cannot be understood has no fix."""
    for finding in findings:
        if finding.fix is None:
            try:
                finding.fix = fix_of(finding, lines)
            except Exception:  # noqa: BLE001  a fix is an offer: source that its maker does not understand gets none
                finding.fix = None
