"""Formats that services read. The outcome has one error (`engine/old.py`, line 4), a warning and an error with a trace and a fix."""

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema
from sarif_pydantic import Sarif

from graphlint import registry
from graphlint.finding import Finding, Report, Stats
from graphlint.report import github, gitlab, junit, markdown, sarif
from graphlint.runner import Outcome
from graphlint.source.discovery import Discovery
from graphlint.source.files import SourceText

SCHEMAS = Path(__file__).parent / "schemas"


def valid(document, name):
    schema = json.loads((SCHEMAS / name).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(document)
    return document


@pytest.fixture
def empty():
    return Outcome(Report([], [], Stats(3, 0, 3, 0.1)), Discovery([], [], []), SourceText(), rules=registry.load())


@pytest.fixture
def repository(tree):
    """The current folder is a sub-folder of a git work tree."""
    root = tree({".git/HEAD": "ref: refs/heads/main\n", "sub/x.txt": ""})
    import os

    os.chdir(root / "sub")
    return root


def sarif_run(outcome):
    document = valid(json.loads(sarif.render(outcome, color=False)), "sarif.json")
    Sarif.model_validate(document)
    return document["runs"][0]


def test_sarif_has_the_trace_as_a_code_flow_and_the_fix(outcome):
    result = sarif_run(outcome)["results"][1]
    assert (result["ruleId"], result["level"], result["rank"]) == ("GL301", "error", 90.0)
    assert result["message"]["text"].endswith("still holds the length of request 3 of the step before.")
    (location,) = result["locations"]
    assert location["physicalLocation"]["region"] == {
        "startLine": 6, "startColumn": 9, "endLine": 6, "endColumn": 45,
        "snippet": {"text": "        self.seq_lens[:num_reqs].copy_(lens)"},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "Runner.prepare", "kind": "function"}]
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["executionOrder"] for step in steps] == [1, 2, 3, 4]
    assert [step["location"]["message"]["text"] for step in steps] == [
        "max_num_reqs lanes", "written: lanes 0 to num_reqs", "read: lanes 0 to num_reqs_padded", "one program a padded request",
    ]
    assert steps[3]["location"]["physicalLocation"]["artifactLocation"]["uri"].endswith("engine/attention.py")
    assert [one["id"] for one in result["relatedLocations"]] == [1, 2, 3, 4]
    (fix,) = result["fixes"]
    assert fix["properties"] == {"applicability": "safe"}
    assert fix["artifactChanges"][0]["replacements"] == [{
        "deletedRegion": {"startLine": 6, "startColumn": 45, "endLine": 6, "endColumn": 45},
        "insertedContent": {"text": "\n        self.seq_lens[num_reqs:].fill_(0)"},
    }]
    assert result["partialFingerprints"] == {"graphlintFingerprint/v1": outcome.report.findings[1].fingerprint}


def test_sarif_reports_what_could_not_be_checked(outcome, empty):
    (invocation,) = sarif_run(outcome)["invocations"]
    assert invocation["executionSuccessful"] is False
    (note,) = invocation["toolExecutionNotifications"]
    assert (note["level"], note["message"]["text"], note["descriptor"]) == ("error", "does not parse", {"id": "syntax"})
    assert note["locations"][0]["physicalLocation"]["region"] == {"startLine": 4}
    assert sarif_run(empty)["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]


def test_sarif_carries_the_pages_of_the_rules(outcome):
    outcome.rules = registry.load()
    run = sarif_run(outcome)
    rules = run["tool"]["driver"]["rules"]
    result = run["results"][1]
    rule = rules[result["ruleIndex"]]
    assert (rule["id"], rule["name"]) == ("GL301", "StaleTail")
    assert "## Why it fails under graphs" in rule["help"]["markdown"]
    assert rule["defaultConfiguration"]["level"] in ("error", "warning")


def test_paths_are_relative_to_the_repository(repository, outcome):
    run = sarif_run(outcome)
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == repository.as_uri() + "/"
    location = run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "sub/engine/runner.py", "uriBaseId": "%SRCROOT%"}
    assert json.loads(gitlab.render(outcome, color=False))[2]["location"]["path"] == "sub/engine/runner.py"
    assert "file=sub/engine/runner.py," in github.render(outcome, color=False)


def test_a_path_outside_of_the_repository_is_absolute(repository, outcome):
    outcome.report.findings[1].path = "../../a b.py"
    location = sarif_run(outcome)["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": (repository.parent / "a b.py").as_uri()}


def test_gitlab(outcome, empty):
    document = valid(json.loads(gitlab.render(outcome, color=False)), "gitlab.json")
    assert [(one["check_name"], one["severity"]) for one in document] == [
        ("graphlint-syntax", "blocker"), ("GL204", "major"), ("GL301", "critical"),
    ]
    assert document[0]["location"]["lines"] == {"begin": 4}
    assert document[2]["description"] == "GL301 stale-tail: `self.seq_lens` is written for live requests only"
    assert document[2]["location"]["lines"] == {"begin": 6, "end": 6}
    assert [one["lines"]["begin"] for one in document[2]["other_locations"]] == [3, 6, 7, 2]
    assert len({one["fingerprint"] for one in document}) == 3
    assert valid(json.loads(gitlab.render(empty, color=False)), "gitlab.json") == []


def junit_root(outcome):
    text = junit.render(outcome, color=False)
    xmlschema.XMLSchema(SCHEMAS / "junit.xsd").validate(text)
    return ElementTree.fromstring(text.encode())


def test_junit(outcome):
    root = junit_root(outcome)
    assert {key: root.get(key) for key in ("tests", "failures", "errors")} == {"tests": "3", "failures": "2", "errors": "1"}
    assert [suite.get("name") for suite in root] == ["engine/attention.py", "engine/old.py", "engine/runner.py"]
    case = root[2][0]
    assert (case.get("classname"), case.get("file"), case.get("line")) == ("engine.runner", "engine/runner.py", "6")
    assert case[0].get("message") == "`self.seq_lens` is written for live requests only"
    assert "3. read: lanes 0 to num_reqs_padded" in case[0].text


def test_junit_fails_only_what_fails_the_run(outcome):
    outcome.failing = "error"
    root = junit_root(outcome)
    assert root.get("failures") == "1"
    assert "n - 1 may be -1" in root[0][0].find("system-out").text


def test_junit_of_a_clean_run_is_a_case_that_passed(empty):
    root = junit_root(empty)
    assert (root.get("tests"), root.get("failures"), root[0][0].get("name")) == ("1", "0", "3 files without findings")


def test_junit_survives_characters_that_xml_forbids(outcome):
    outcome.report.findings[0].message = "a \x0c form feed & <tag>"
    assert junit_root(outcome)[0][0][0].get("message") == "a \ufffd form feed & <tag>"


def test_github_annotates_worst_first_and_escapes(outcome, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    outcome.report.findings[0].message = "100% wrong,\nsay: no"
    lines = github.render(outcome, color=False).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning"]
    assert lines[0] == "::error title=graphlint%3A syntax error,file=engine/old.py,line=4::does not parse"
    assert lines[1].startswith(
        "::error title=GL301 stale-tail,file=engine/runner.py,line=6,endLine=6,col=9,endColumn=45::`self.seq_lens` is written for live "
        "requests only%0A1. engine/runner.py:3: max_num_reqs lanes%0A2. "
    )
    assert lines[2] == "::warning title=GL204 unclamped-decrement,file=engine/attention.py,line=2,endLine=2::100%25 wrong,%0Asay: no"


def test_markdown(outcome):
    text = markdown.render(outcome, color=False)
    assert "| GL301 | stale-tail | error | 1 |" in text
    assert "- `engine/old.py:4`: does not parse" in text
    assert "### error GL301: `self.seq_lens` is written for live requests only" in text
    assert "3. `engine/runner.py:7` read: lanes 0 to num\\_reqs\\_padded" in text
    assert "6 |         self.seq_lens[:num_reqs].copy_(lens)" in text
    assert text.count("```") % 2 == 0


def test_markdown_shows_markup_in_messages_as_text(empty):
    empty.report.findings.append(Finding(
        rule="XX101", name="x", severity="error", confidence="high", path="a.py", line=1, message="a*b*c <b> `x*y` [link](url)",
    ))
    assert "### error XX101: a\\*b\\*c \\<b\\> `x*y` \\[link\\](url)" in markdown.render(empty, color=False)
