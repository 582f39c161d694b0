"""GitLab's code quality report (the part of the Code Climate format that GitLab reads)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from graphlint.finding import Finding, RunError
from graphlint.report.places import in_repository

if TYPE_CHECKING:
    from graphlint.runner import Outcome

FOR_PEOPLE = False
SEVERITIES = {"error": "critical", "warning": "major", "info": "info"}


def render(outcome: Outcome, *, color: bool) -> str:
    """A JSON list; what could not be checked is in it as a blocker, since the format has no other place for it."""
    items = [*map(_error, outcome.report.errors), *map(_finding, outcome.report.findings)]
    return msgspec.json.format(msgspec.json.encode(items), indent=2).decode() + "\n"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "description": f"{finding.rule} {finding.name}: {finding.message}",
        "check_name": finding.rule,
        "categories": ["Bug Risk"],
        "fingerprint": finding.fingerprint,
        "severity": SEVERITIES[finding.severity],
        "location": {"path": in_repository(finding.path), "lines": {"begin": finding.line, "end": max(finding.end_line, finding.line)}},
        "other_locations": [{"path": in_repository(point.path), "lines": {"begin": point.line}} for point in finding.trace],
    }


def _error(error: RunError) -> dict[str, Any]:
    identity = "\0".join((error.path, error.kind, error.message))
    return {
        "description": f"graphlint: {error.message}",
        "check_name": f"graphlint-{error.kind}",
        "categories": ["Bug Risk"],
        "fingerprint": hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=10).hexdigest(),
        "severity": "blocker",
        "location": {"path": in_repository(error.path) if error.path else ".", "lines": {"begin": max(error.line, 1)}},
    }
