"""Real bugs: the ones that must never be lost, by the rule that is about them, and the recall of all."""

from __future__ import annotations

import pytest

from bench.bugs import load_bugs, load_open_faults, scored_bugs
from bench.checker import Checker
from bench.floors import load_floors
from bench.releases import Release
from bench.score import concerns, recall, score_bugs

pytestmark = pytest.mark.ecosystem


@pytest.mark.parametrize("name", ["V03", "V05", "V08", "V33", "V48", "V49"])
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


def test_recall_keeps_its_floor(checker: Checker) -> None:
    floor = load_floors().recall
    if floor is None:
        pytest.fail("bench/floors.toml records no recall; `python -m bench score` measures it")
    found, of = recall(score_bugs(scored_bugs(), checker))
    assert found >= floor, f"{found} of {of} found"
