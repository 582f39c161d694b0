"""Scores the resolution on labelled deployments: `python -m bench.config.cases [FILE]`.

A case has a command, a release, facts, the effective modes that are right, and a severity. Prints the misses and the two rates;
exit status 1 below 95 % for the mode or 90 % for the severity.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

from graphlint.config.check import Options, Result, check_deployments
from graphlint.config.gpu import parse_gpu
from graphlint.config.readers.launch import script_deployments
from graphlint.config.situation import parse_assumptions
from graphlint.config.versions import parse_version

CASES = Path(__file__).resolve().parents[2] / "tests" / "config" / "cases" / "cases.json"
MODE_RATE, SEVERITY_RATE = 0.95, 0.90


class Score(NamedTuple):
    """One case: what came out, and whether mode and severity are right."""

    id: str
    mode: str
    mode_right: bool
    severity: str
    severity_right: bool
    detail: str


def run(case: dict[str, Any]) -> Result:
    """The check of one case, as `graphlint config` does it."""
    given = parse_assumptions(tuple(case["assume"]))
    if case["gpu"]:
        given.gpu = parse_gpu(case["gpu"])
    deployments, _ = script_deployments(case["command"], "case.sh")
    return check_deployments(deployments, Options(given=given, version=parse_version(case["version"])), ("case.sh", case["command"]))


def score(case: dict[str, Any]) -> Score:
    """Compares with the labels; any kind of start-up error matches another."""
    result = run(case)
    if not result.checked:
        return Score(case["id"], "no deployment", False, "", False, "")
    one = result.checked[0]
    mode = one.sglang.effective if one.sglang is not None else one.resolved[0].outcome.effective
    right = any(_same(mode, wanted) for wanted in case["effective"])
    ranks = {"ok": 0, "info": 1, "warning": 2, "error": 3}
    severity = max((f.severity for f in result.findings if f.confidence != "low"), key=ranks.__getitem__, default="ok")
    detail = "; ".join(f"{f.rule} {f.severity}: {f.message}" for f in result.findings)
    return Score(case["id"], mode, right, severity, severity == case["severity"], detail)


def _same(have: str, wanted: str) -> bool:
    if wanted.startswith("startup-error"):
        return have.startswith("startup-error")
    if have.startswith("decode "):
        return set(wanted.split(" / ")) <= set(have.split(" / "))
    return have == wanted


def main(arguments: list[str]) -> int:
    """Prints the score of all cases."""
    path = Path(arguments[0]) if arguments else CASES
    cases = json.loads(path.read_text())
    scores = [score(case) for case in cases]
    for case, one in zip(cases, scores, strict=True):
        if not one.mode_right:
            print(f"mode      {one.id}: {one.mode}, expected {' or '.join(case['effective'])}\n          {one.detail}")
        if not one.severity_right:
            print(f"severity  {one.id}: {one.severity}, expected {case['severity']}\n          {one.detail}")
    modes = sum(s.mode_right for s in scores) / len(scores)
    severities = sum(s.severity_right for s in scores) / len(scores)
    print(f"{len(scores)} cases: mode {modes:.1%}, severity {severities:.1%}")
    return 0 if modes >= MODE_RATE and severities >= SEVERITY_RATE else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
