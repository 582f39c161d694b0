"""The finding model: what `graphlint check` says, in the shape of JSON schema 1."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Severity = Literal["error", "warning", "info"]
Confidence = Literal["high", "medium", "low"]
Applicability = Literal["safe", "unsafe", "display"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error")
CONFIDENCES: tuple[Confidence, ...] = ("low", "medium", "high")


class TracePoint(msgspec.Struct, frozen=True):
    """One step of the path from allocation or writer to reader."""

    path: str
    line: int
    label: str
    column: int = 1
    end_line: int = 0
    end_column: int = 0


class Edit(msgspec.Struct, frozen=True):
    """Replace the text of a source range (1-based, end exclusive) by `text`."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str


class Fix(msgspec.Struct, frozen=True):
    """A change that removes the finding. `safe` cannot change what live lanes compute."""

    applicability: Applicability
    title: str
    edits: list[Edit] = []


class Witness(msgspec.Struct, frozen=True):
    """A batch schedule that makes the fault visible, e.g. 12 requests, then 3 padded to 4.

    `steps` are {"live": n, "padded": m, "unit": "requests"|"tokens", "mode": "FULL"|"PIECEWISE"|...}; `stale` is the half-open range of
    lanes that hold the older step's values; `text` says it in words.
    """

    steps: list[dict[str, Any]]
    stale: list[int]
    text: str


class Finding(msgspec.Struct, kw_only=True):
    """One fault, at one place, with the way from writer to reader."""

    rule: str
    name: str
    severity: Severity
    confidence: Confidence
    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    symbol: str = ""
    message: str
    buffer: str | None = None
    trace: list[TracePoint] = []
    witness: Witness | None = None
    fix: Fix | None = None
    fingerprint: str = ""


class RunError(msgspec.Struct, frozen=True):
    """A file or rule that could not be handled. `kind`: syntax, encoding, io, rule, internal, ..."""

    path: str
    kind: str
    message: str
    line: int = 0


class Strip(msgspec.Struct, frozen=True):
    """Lanes of one step that was run: `live` ones first, padded ones up to `padded`, those of `faulty` wrong."""

    label: str
    live: int
    padded: int
    faulty: tuple[int, ...] = ()
    text: str = ""


class Proof(msgspec.Struct, frozen=True):
    """What running a finding's kernel showed: `result` in a word, why, and the steps that tell."""

    result: str
    reason: str
    strips: tuple[Strip, ...] = ()


class Grid(msgspec.Struct, frozen=True):
    """A table beside the findings. A cell is its text and a tone: good, part, bad or none."""

    title: str
    legend: str
    head: tuple[str, ...]
    rows: tuple[tuple[tuple[str, str], ...], ...]


class Stats(msgspec.Struct):
    """Counts of one run."""

    files: int = 0
    parsed: int = 0
    cached: int = 0
    seconds: float = 0.0


class Report(msgspec.Struct):
    """Everything one run has to say."""

    findings: list[Finding]
    errors: list[RunError]
    stats: Stats
