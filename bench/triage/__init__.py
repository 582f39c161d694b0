"""Verdicts of people on what graphlint reports on a release: `<release>.toml`, one table a finding, keyed by its fingerprint.

`true`: a running engine can do the wrong thing. `latent`: wrong as the code stands, but no caller in the tree reaches it. `false`: the
code is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import msgspec

from bench.data import BENCH, read_toml
from bench.releases import Release
from graphlint.finding import Finding

Verdict = Literal["true", "latent", "false"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One judged finding. Rule, path, symbol and buffer are there for people."""

    fingerprint: str
    verdict: Verdict
    reason: str
    rule: str = ""
    path: str = ""
    symbol: str = ""
    buffer: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    finding: list[Entry] = []


class Triage(msgspec.Struct, frozen=True):
    """A release's findings beside its verdicts."""

    release: str
    judged: list[tuple[Finding, Entry]]
    untriaged: list[Finding]
    stale: list[Entry]

    @property
    def counts(self) -> dict[str, int]:
        """Findings by verdict."""
        count = Counter(entry.verdict for _, entry in self.judged)
        return {verdict: count[verdict] for verdict in get_args(Verdict)}


def triage_file(release: Release) -> Path:
    """Where the verdicts of a release are kept."""
    return BENCH / "triage" / f"{release}.toml"


def load_entries(release: Release) -> list[Entry]:
    """The verdicts of a release; none where there is no file. ValueError when a finding is judged twice or without a reason."""
    path = triage_file(release)
    entries = read_toml(path, _File).finding if path.is_file() else []
    for fingerprint, number in Counter(entry.fingerprint for entry in entries).items():
        if number > 1:
            raise ValueError(f"{path}: {fingerprint} is judged {number} times")
    for entry in entries:
        if not entry.reason.strip():
            raise ValueError(f"{path}: {entry.fingerprint} ({entry.rule} {entry.symbol}) has no reason")
    return entries


def compare(release: Release, findings: Sequence[Finding], entries: Sequence[Entry]) -> Triage:
    """Match findings and verdicts by fingerprint."""
    verdicts = {entry.fingerprint: entry for entry in entries}
    present = {finding.fingerprint for finding in findings}
    return Triage(
        release=str(release),
        judged=[(finding, verdicts[finding.fingerprint]) for finding in findings if finding.fingerprint in verdicts],
        untriaged=[finding for finding in findings if finding.fingerprint not in verdicts],
        stale=[entry for entry in entries if entry.fingerprint not in present],
    )


def template(finding: Finding) -> str:
    """A table to paste into the release's file and fill in."""
    known = {
        "fingerprint": finding.fingerprint, "rule": finding.rule, "path": finding.path, "symbol": finding.symbol, "buffer": finding.buffer,
    }
    fields = {**{name: value for name, value in known.items() if value}, "verdict": "", "reason": ""}
    lines = "\n".join(f"{name} = {msgspec.json.encode(value).decode()}" for name, value in fields.items())
    return f"# {finding.path}:{finding.line}: {finding.message}\n[[finding]]\n{lines}\n"
