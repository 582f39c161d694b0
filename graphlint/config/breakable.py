"""Breakable CUDA graphs: piecewise capture without torch.compile (0.22.0 and later)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphlint.config.modes import VLLM_COMPILE
from graphlint.config.versions import V

if TYPE_CHECKING:
    from graphlint.config.outcome import Outcome
    from graphlint.config.situation import Situation


def breakable_enabled(situation: Situation) -> bool:
    """Whether `VLLM_USE_BREAKABLE_CUDAGRAPH` is on, set or by the model's architecture."""
    version, tables = situation.request.version, situation.tables
    if "VLLM_USE_BREAKABLE_CUDAGRAPH" not in tables.env:
        return False
    if "VLLM_USE_BREAKABLE_CUDAGRAPH" in situation.request.env:
        return situation.request.flag_env("VLLM_USE_BREAKABLE_CUDAGRAPH") == "1"
    architectures = tables.breakable_archs_rocm if situation.platform == "rocm" and version >= V("0.29.0") else tables.breakable_archs
    return (situation.model.architecture or "") in architectures


def piecewise_available(situation: Situation, outcome: Outcome) -> bool:
    """V2's test of 0.30.0 and later: a compiled submodule or breakable graphs."""
    if outcome.runner is None or not outcome.runner.v2:
        return True
    if outcome.breakable:
        return True
    compiled = situation.model.compiled_rocm if situation.platform == "rocm" else situation.model.compiled
    return outcome.compile_mode == VLLM_COMPILE and compiled is not False
