"""A good release with one padding statement or guard removed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bench.checker import Checker
from bench.floors import load_floors
from bench.mutants.score import score_mutants, select
from bench.releases import Release
from graphlint.finding import Finding

pytestmark = pytest.mark.ecosystem

SPECULATOR = "vllm/v1/worker/gpu/spec_decode/eagle/speculator.py"
GATE = f"{SPECULATOR}::EagleSpeculator.init_cudagraph_manager::gate:cudagraph_mode#1"
TAIL = f"{SPECULATOR}::_prepare_eagle_inputs_kernel::kernel:last_token_indices_ptr#1"
#: the kinds whose harm has been judged
PADDING = ("kernel", "host", "gate")
Mutated = Callable[[str, str], list[Finding]]


def piecewise_decode(findings: list[Finding]) -> list[Finding]:
    method = (SPECULATOR, "EagleSpeculator.init_cudagraph_manager")
    return [one for one in findings if one.rule == "GL501" and (one.path, one.symbol) == method]


def stale_indices(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.rule == "GL201" and "last_token_indices" in f"{one.buffer} {one.message}"]


def test_the_release_itself_has_neither_fault(checker: Checker) -> None:
    findings = checker.findings(Release("vllm", "0.20.0"))
    assert piecewise_decode(findings) == []
    assert stale_indices(findings) == []


def test_a_piecewise_draft_decode_is_reported(mutated: Mutated) -> None:
    findings = mutated("vllm-0.20.0", GATE)
    assert piecewise_decode(findings)
    assert stale_indices(findings) == []


def test_unpadded_indices_are_followed_into_the_captured_prefill(mutated: Mutated) -> None:
    findings = mutated("vllm-0.20.0", TAIL)
    assert piecewise_decode(findings) == []
    hits = stale_indices(findings)
    assert hits
    for finding in hits:
        reader = finding.trace[-1]
        assert reader.path == SPECULATOR
        assert 223 <= reader.line <= 262, f"the trace ends at line {reader.line}, outside EagleSpeculator.prefill"


@pytest.mark.parametrize("name", ["vllm-0.20.0", "vllm-0.33.0"])
def test_mutants_keep_their_floor(name: str, checker: Checker) -> None:
    floor = load_floors().mutants.get(name)
    if floor is None:
        pytest.fail(f"bench/floors.toml records no mutants of {name}; `python -m bench mutants {name}` measures them")
    release = Release.parse(name)
    wanted, unknown = select(release, kinds=PADDING)
    assert unknown == []
    assert wanted
    scores = score_mutants(release, wanted, checker)
    noticed = {verdict: [one.id for one in scores if one.verdict == verdict and one.noticed] for verdict in ("harmful", "redundant")}
    assert len(noticed["harmful"]) >= floor.harmful
    assert len(noticed["redundant"]) <= floor.redundant, noticed["redundant"]
