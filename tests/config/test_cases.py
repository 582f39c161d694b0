"""Labelled deployments: effective mode and severity, each case on its own, and the rates that the project promises."""

from __future__ import annotations

import json

import pytest

from bench.config.cases import CASES, MODE_RATE, SEVERITY_RATE, score

LABELLED = json.loads(CASES.read_text())


@pytest.mark.parametrize("case", LABELLED, ids=[c["id"] for c in LABELLED])
def test_the_effective_mode_is_the_labelled_one(case):
    one = score(case)
    assert one.mode_right, f"{one.mode}, expected {case['effective']}: {one.detail}"


def test_the_rates_hold():
    scores = [score(case) for case in LABELLED]
    assert len(scores) >= 50
    assert sum(s.mode_right for s in scores) / len(scores) >= MODE_RATE
    assert sum(s.severity_right for s in scores) / len(scores) >= SEVERITY_RATE
