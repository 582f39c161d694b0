"""Which findings a baseline knows, and which of its entries are out of date."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from graphlint.baseline.file import Entry, entry_of
from graphlint.finding import Finding
from graphlint.source.files import SourceText


class Matched(msgspec.Struct):
    """The outcome for one run. `kept` are the entries that still stand for a finding, as they would be written now."""

    file: Path
    new: list[Finding]
    known: int
    kept: list[Entry]
    #: entries whose finding is gone
    stale: list[Entry]
    #: entries that this run cannot judge: their file or rule was not looked at
    unjudged: list[Entry]

    @property
    def current(self) -> list[Entry]:
        """What the file should hold after this run, without new findings."""
        return [*self.kept, *self.unjudged]


def match(
    findings: Sequence[Finding], entries: Sequence[Entry], file: Path, sources: SourceText, *, looked_at: Collection[str],
    broken: Collection[str], ran: Collection[str],
) -> Matched:
    """Match findings with entries: by fingerprint, then what is left by content, which finds functions that moved to another file or class.

    An entry without a finding is stale only where this run must have seen it: its rule came to its end (`ran`), its file was read
    (`broken` are those that were not), and the run looked at every file that the baseline speaks of, since a part of a project can lack
    the code that makes a fault visible.
    """
    mine = {id(finding): entry_of(finding, sources, file) for finding in findings}
    by_fingerprint = {entry.fingerprint: entry for entry in entries}
    left = dict.fromkeys(entries)
    kept: list[Entry] = []
    rest: list[Finding] = []
    for finding in findings:
        known = by_fingerprint.get(finding.fingerprint)
        if known is not None and known in left:
            del left[known]
            kept.append(mine[id(finding)])
        else:
            rest.append(finding)
    new: list[Finding] = []
    for finding in rest:
        entry = mine[id(finding)]
        moved = next((one for one in left if one.content == entry.content and one.rule == entry.rule), None)
        if moved is None:
            new.append(finding)
        else:
            del left[moved]
            kept.append(entry)
    seen = {os.path.abspath(path) for path in looked_at}
    unread = {os.path.abspath(path) for path in broken if path}
    whole = all(path in seen or not os.path.exists(path) for path in {entry.absolute(file) for entry in entries})
    stale = [entry for entry in left if whole and entry.rule in ran and entry.absolute(file) not in unread]
    unjudged = [entry for entry in left if entry not in set(stale)]
    return Matched(file, new, len(kept), kept, stale, unjudged)
