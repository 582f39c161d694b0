"""SARIF 2.1.0, for GitHub code scanning and SARIF viewers.

A trace becomes a code flow and related locations, the witness the message of the flow, a fingerprint a partial fingerprint; rules carry
their pages as help. What could not be checked becomes a notification of the invocation: a run that failed must not look clean.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from graphlint import __version__
from graphlint.finding import Edit, Finding, Fix, RunError, TracePoint
from graphlint.report.places import as_uri, in_repository, repository_root

if TYPE_CHECKING:
    from graphlint.rule_pages import Page
    from graphlint.runner import Outcome
    from graphlint.source.files import SourceText

FOR_PEOPLE = False
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"error": "error", "warning": "warning", "info": "note"}
#: GitHub's precision, and SARIF's rank (0 to 100) of a result
PRECISION = {"high": "high", "medium": "medium", "low": "low"}
RANK = {"high": 90.0, "medium": 60.0, "low": 30.0}
ROOT = "%SRCROOT%"


def render(outcome: Outcome, *, color: bool) -> str:
    """One run."""
    from graphlint.rule_pages import pages

    report = outcome.report
    rules = [] if outcome.rules is None else pages(outcome.rules)
    index = {page.id: number for number, page in enumerate(rules)}
    run = {
        "tool": {"driver": {
            "name": "graphlint", "version": __version__, "semanticVersion": __version__,
            "shortDescription": {"text": "Finds CUDA-graph padding bugs in LLM serving engines."},
            "rules": [_rule(page) for page in rules],
        }},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"uri": as_uri(repository_root(os.getcwd()), folder=True)}},
        "invocations": [{
            "executionSuccessful": not report.errors,
            "toolExecutionNotifications": [_notification(error) for error in report.errors],
        }],
        "results": [_result(finding, index, outcome.sources) for finding in report.findings],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _rule(page: Page) -> dict[str, Any]:
    return {
        "id": page.id,
        "name": "".join(word.capitalize() for word in page.name.split("-")),
        "shortDescription": {"text": page.summary},
        "fullDescription": {"text": page.summary},
        "help": {"text": page.text, "markdown": page.text},
        "defaultConfiguration": {"level": LEVELS[page.severity]},
        "properties": {
            "tags": ["correctness", "cuda-graphs", *([page.family] if page.family else [])],
            "problem.severity": {"info": "recommendation"}.get(page.severity, page.severity),
            "status": page.status,
            "since": page.since,
            "references": list(page.references),
        },
    }


def _result(finding: Finding, index: dict[str, int], sources: SourceText) -> dict[str, Any]:
    result: dict[str, Any] = {"ruleId": finding.rule}
    if finding.rule in index:
        result["ruleIndex"] = index[finding.rule]
    where: dict[str, Any] = {"physicalLocation": _physical(
        finding.path, finding.line, finding.column, finding.end_line, finding.end_column, sources,
    )}
    if finding.symbol:
        where["logicalLocations"] = [{"fullyQualifiedName": finding.symbol, "kind": "function"}]
    result |= {
        "level": LEVELS[finding.severity],
        "rank": RANK[finding.confidence],
        "message": {"text": finding.message + (f"\n{finding.witness.text}" if finding.witness and finding.witness.text else "")},
        "locations": [where],
        "partialFingerprints": {"graphlintFingerprint/v1": finding.fingerprint},
        "properties": {
            "precision": PRECISION[finding.confidence],
            "buffer": finding.buffer,
            "witness": msgspec.to_builtins(finding.witness),
        },
    }
    if finding.trace:
        steps = [_step(point, sources) for point in finding.trace]
        flow: dict[str, Any] = {"threadFlows": [{"locations": [
            {"location": step, "executionOrder": number, "importance": "essential"} for number, step in enumerate(steps, 1)
        ]}]}
        if finding.witness and finding.witness.text:
            flow["message"] = {"text": finding.witness.text}
        result["codeFlows"] = [flow]
        result["relatedLocations"] = [step | {"id": number} for number, step in enumerate(steps, 1)]
    if finding.fix is not None and finding.fix.edits:
        result["fixes"] = [_fix(finding.fix)]
    return result


def _step(point: TracePoint, sources: SourceText) -> dict[str, Any]:
    return {
        "physicalLocation": _physical(point.path, point.line, point.column, point.end_line, point.end_column, sources),
        "message": {"text": point.label},
    }


def _artifact(path: str) -> dict[str, Any]:
    shown = in_repository(path)
    if os.path.isabs(shown):
        return {"uri": as_uri(shown)}
    return {"uri": quote(shown), "uriBaseId": ROOT}


def _physical(path: str, line: int, column: int, end_line: int, end_column: int, sources: SourceText) -> dict[str, Any]:
    """A range; where its end is not known it ends with the line, which SARIF says by leaving the end out."""
    region: dict[str, Any] = {"startLine": max(line, 1), "startColumn": max(column, 1)}
    if end_line >= line and end_column > 0 and (end_line > line or end_column > column):
        region |= {"endLine": end_line, "endColumn": end_column}
    lines = sources.lines(path)[max(line, 1) - 1 : max(end_line, line)]
    if lines:
        region["snippet"] = {"text": "\n".join(lines)}
    return {"artifactLocation": _artifact(path), "region": region}


def _fix(fix: Fix) -> dict[str, Any]:
    """The edits by file. Whether a fix is safe stands in its properties: SARIF has no word for it."""
    by_path: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_path.setdefault(edit.path, []).append(edit)
    return {
        "description": {"text": fix.title},
        "artifactChanges": [
            {"artifactLocation": _artifact(path), "replacements": [_replacement(edit) for edit in edits]} for path, edits in by_path.items()
        ],
        "properties": {"applicability": fix.applicability},
    }


def _replacement(edit: Edit) -> dict[str, Any]:
    region = {"startLine": edit.line, "startColumn": edit.column, "endLine": edit.end_line, "endColumn": edit.end_column}
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _notification(error: RunError) -> dict[str, Any]:
    out: dict[str, Any] = {"level": "error", "message": {"text": error.message}, "descriptor": {"id": error.kind}}
    if error.path:
        location: dict[str, Any] = {"artifactLocation": _artifact(error.path)}
        if error.line:
            location["region"] = {"startLine": error.line}
        out["locations"] = [{"physicalLocation": location}]
    return out
