"""JUnit XML, which every CI server shows as test results: a suite a file, a case a finding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from graphlint.finding import Finding, RunError
from graphlint.report.text import render_finding

if TYPE_CHECKING:
    from graphlint.runner import Outcome

FOR_PEOPLE = False
#: characters that XML 1.0 cannot hold
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(outcome: Outcome, *, color: bool) -> str:
    """Findings that fail the run are failures, milder ones pass with their text as output. A clean run is one case that passed."""
    report = outcome.report
    findings: dict[str, list[Finding]] = {}
    errors: dict[str, list[RunError]] = {}
    for finding in report.findings:
        findings.setdefault(finding.path, []).append(finding)
    for error in report.errors:
        errors.setdefault(error.path or "graphlint", []).append(error)
    root = Xml.Element("testsuites", name="graphlint")
    for path in sorted({*findings, *errors}):
        suite = Xml.SubElement(root, "testsuite", name=_clean(path))
        for error in errors.get(path, ()):
            _error(suite, path, error)
        for finding in findings.get(path, ()):
            _finding(suite, finding, outcome)
        _count(suite)
    if not len(root):
        suite = Xml.SubElement(root, "testsuite", name="graphlint")
        Xml.SubElement(suite, "testcase", name=f"{report.stats.files} files without findings", classname="graphlint")
        _count(suite)
    _count(root)
    root.set("time", f"{report.stats.seconds:.3f}")
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _finding(suite: Xml.Element, finding: Finding, outcome: Outcome) -> None:
    name = f"{finding.rule} {finding.name} ({finding.symbol or 'module'}, line {finding.line}, column {finding.column})"
    case = Xml.SubElement(suite, "testcase", name=_clean(name), classname=_clean(finding.path.removesuffix(".py").replace("/", ".")))
    case.set("file", _clean(finding.path))
    case.set("line", str(finding.line))
    text = _clean(render_finding(finding, outcome.sources, color=False))
    if outcome.is_failure(finding):
        failure = Xml.SubElement(case, "failure", message=_clean(finding.message), type=finding.severity)
        failure.text = text
    else:
        Xml.SubElement(case, "system-out").text = text


def _error(suite: Xml.Element, path: str, error: RunError) -> None:
    case = Xml.SubElement(suite, "testcase", name=f"graphlint: {error.kind}", classname=_clean(path.removesuffix(".py").replace("/", ".")))
    case.set("file", _clean(path))
    if error.line:
        case.set("line", str(error.line))
    Xml.SubElement(case, "error", message=_clean(error.message), type=error.kind)


def _count(element: Xml.Element) -> None:
    element.set("tests", str(len(element.findall(".//testcase"))))
    element.set("failures", str(len(element.findall(".//failure"))))
    element.set("errors", str(len(element.findall(".//error"))))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
