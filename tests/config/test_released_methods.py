"""The released resolver and size methods, run alone, agree with the resolution; the extractor makes the bundled tables."""

from __future__ import annotations

import msgspec
import pytest

from bench.config.lift import Released, compare_modes, compare_sizes
from bench.releases import Release, release_tree
from graphlint.config.extract import extract_tables
from graphlint.config.tables import Tables, load_release
from graphlint.config.versions import V, parse_version

RELEASES = (
    "0.10.2",
    "0.11.0",
    "0.11.1",
    "0.11.2",
    "0.12.0",
    "0.13.0",
    "0.16.0",
    "0.19.1",
    "0.20.2",
    "0.22.1",
    "0.25.1",
    "0.28.0",
    "0.30.0",
    "0.33.0",
)

pytestmark = pytest.mark.ecosystem


@pytest.mark.parametrize("text", RELEASES)
def test_the_released_methods_agree(text: str):
    version = parse_version(text)
    released = Released(release_tree(Release("vllm", text)), version)
    combinations, wrong = compare_modes(released)
    assert combinations >= 3840
    assert wrong == []
    settings, wrong = compare_sizes(released, 3000, seed=len(text))
    assert settings == (3000 if version >= V("0.11.1") else 0)
    assert wrong == []


@pytest.mark.parametrize("text", ["0.11.2", "0.19.1", "0.33.0"])
def test_the_bundled_table_is_what_the_extractor_makes(text: str):
    made = extract_tables(release_tree(Release("vllm", text)), text)
    assert msgspec.to_builtins(made) == msgspec.to_builtins(load_release(parse_version(text)))
    assert isinstance(made, Tables)
