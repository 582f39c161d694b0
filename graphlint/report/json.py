"""JSON, schema 1: the stable machine-readable form (`docs/schema/graphlint-report-1.schema.json`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from graphlint import __version__
from graphlint.finding import Finding

if TYPE_CHECKING:
    from graphlint.runner import Outcome

FOR_PEOPLE = False
SCHEMA = 1


def render(outcome: Outcome, *, color: bool) -> str:
    """The report with two spaces of indentation; keys always in the order of the schema."""
    report = outcome.report
    document = {
        "schema": SCHEMA,
        "tool": {"name": "graphlint", "version": __version__},
        "findings": [finding_dict(finding) for finding in report.findings],
        "errors": [
            {"path": e.path, "kind": e.kind, "message": f"line {e.line}: {e.message}" if e.line else e.message} for e in report.errors
        ],
        "stats": msgspec.to_builtins(report.stats),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def finding_dict(finding: Finding) -> dict[str, Any]:
    """A finding as schema 1 has it."""
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "path": finding.path,
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.end_line or finding.line,
        "end_column": finding.end_column or finding.column,
        "symbol": finding.symbol,
        "message": finding.message,
        "buffer": finding.buffer,
        "trace": [{"path": point.path, "line": point.line, "label": point.label} for point in finding.trace],
        "witness": msgspec.to_builtins(finding.witness),
        "fix": msgspec.to_builtins(finding.fix),
        "fingerprint": finding.fingerprint,
    }
