"""Whole releases: everything that is reported has been judged, nothing depends on the run, and it is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.checker import Checker, run_raw
from bench.floors import load_floors
from bench.releases import Release, package_dir
from bench.timing import parsing_seconds, timed
from bench.triage import compare, load_entries

pytestmark = pytest.mark.ecosystem

LATEST = Release("vllm", "0.33.0")
CHECK = ("check", "vllm", "--exit-zero", "--output-format", "json")


@pytest.mark.parametrize("version", ["0.33.0", "0.20.0"])
def test_every_finding_has_a_verdict(version: str, checker: Checker) -> None:
    release = Release("vllm", version)
    result = compare(release, checker.findings(release), load_entries(release))
    assert [f"{one.path}:{one.line}: {one.rule} {one.message}" for one in result.untriaged] == []
    assert [f"{one.rule} {one.path} {one.symbol} {one.fingerprint}" for one in result.stale] == []


@pytest.mark.parametrize("name", ["vllm-0.33.0", "vllm-0.20.0"])
def test_noise_keeps_its_ceiling(name: str, checker: Checker) -> None:
    ceiling = load_floors().noise.get(name)
    if ceiling is None:
        pytest.fail(f"bench/floors.toml records no noise of {name}; `python -m bench noise {name}` measures it")
    report = checker.report(Release.parse(name))
    assert report.errors == []
    assert len(report.findings) <= ceiling


def test_the_report_does_not_depend_on_jobs_cache_or_run() -> None:
    package = package_dir(LATEST)

    def report(*options: str) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(run_raw(package, "--output-format", "json", *options))
        found["stats"].pop("seconds")
        return found

    one = report("--jobs", "1", "--no-cache")
    assert one["stats"]["files"] > 2000
    assert report("--jobs", "2", "--no-cache") == one
    report()
    warm = report()
    assert report() == warm
    assert {**warm, "stats": one["stats"]} == one


#: what `ast.parse` alone took for the package where the goal was set: 10 s for a cold run and 1 s for a warm one
PARSING = 3.8


def test_cold_and_warm_runs_are_quick(tmp_path: Path) -> None:
    """The goal holds for a machine of a certain speed: on one that parses half as fast, runs may take twice as long."""
    package = package_dir(LATEST)
    slowness = max(1.0, parsing_seconds(package) / PARSING)
    cold = [timed(CHECK, package.parent, tmp_path / f"cache-{number}") for number in range(2)]
    warm = [timed(CHECK, package.parent, tmp_path / "cache-0") for _ in range(3)]
    assert min(run.seconds for run in cold) <= 10 * slowness
    assert min(run.seconds for run in warm) <= 1 * slowness
