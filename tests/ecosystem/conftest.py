"""Releases are downloaded once (see bench/releases.py) and checked once a session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.checker import Checker
from bench.mutants.score import mutated_findings
from bench.mutants.sites import mutants_of_package
from bench.releases import Release, package_dir
from graphlint.finding import Finding


@pytest.fixture(scope="session")
def checker() -> Checker:
    return Checker()


@pytest.fixture(scope="session")
def mutated() -> Callable[[str, str], list[Finding]]:
    """Findings on a release with one mutant applied; a mutant that the release does not have is a failure."""

    def run(release: str, mutant_id: str) -> list[Finding]:
        package = package_dir(Release.parse(release))
        (mutant,) = [one for one in mutants_of_package(package, only=frozenset({mutant_id.partition("::")[0]})) if one.id == mutant_id]
        return mutated_findings(package, mutant)

    return run
