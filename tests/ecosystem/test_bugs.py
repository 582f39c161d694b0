"""Real bugs: the founding ones by the rule that is about them, and those that were found once."""

from __future__ import annotations

import pytest

from bench.bugs import load_bugs, load_open_faults, scored_bugs
from bench.checker import Checker
from bench.floors import load_floors
from bench.releases import Release
from bench.score import concerns, score_bugs

pytestmark = pytest.mark.ecosystem


#: what the project set out to find, by the rule that is about it
FOUNDING = ("V03", "V05", "V08", "V33", "V48", "V49")


@pytest.mark.parametrize("name", FOUNDING)
def test_found_in_the_bad_release_and_gone_in_the_good_one(name: str, checker: Checker) -> None:
    (bug,) = [one for one in load_bugs() if one.id == name]
    (score,) = score_bugs([bug], checker)
    assert score.found, "still reported after the fix" if score.still_reported else "silent on the bad release"
    assert score.by_kind, f"found by {score.rules} only, the bug is about {bug.rules}"


def test_stale_page_offsets_are_reported_with_care_on_0_33_0(checker: Checker) -> None:
    (fault,) = [one for one in load_open_faults() if one.id == "O06"]
    findings = checker.findings(Release("vllm", "0.33.0"))
    hits = [finding for finding in findings if finding.rule == "GL101" and concerns(finding, fault, near_lines=False)]
    assert hits
    for finding in hits:  # no caller in the tree reaches it, so it must not be shouted
        assert finding.confidence != "high" or finding.severity == "warning", finding.message


@pytest.mark.parametrize("name", [one for one in load_floors().found if one not in FOUNDING])
def test_what_was_found_once_stays_found(name: str, checker: Checker) -> None:
    (bug,) = [one for one in load_bugs() if one.id == name]
    (score,) = score_bugs([bug], checker)
    assert score.found, "still reported after the fix" if score.still_reported else "silent on the bad release"


def test_floors_name_bugs_that_exist() -> None:
    assert {*load_floors().found} <= {bug.id for bug in scored_bugs()}
    assert {*FOUNDING} <= {*load_floors().found}
