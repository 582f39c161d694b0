"""The drafter's own CUDA-graph mode (eagle.py and its successors on V1, the speculators on V2)."""

from __future__ import annotations

from typing import NamedTuple

from graphlint.config.modes import VLLM_COMPILE, Mode, decode_mode, has_piecewise, mixed_mode
from graphlint.config.request import Speculation
from graphlint.config.versions import V, Version


class Drafter(NamedTuple):
    """Mode of the first draft step and of the steps after it; `graphs` is false where the method has no graphs at all."""

    first: Mode
    later: Mode
    why: str
    graphs: bool = True

    @property
    def text(self) -> str:
        """One phrase for reports."""
        if not self.graphs:
            return f"no graphs ({self.why})"
        if self.first == self.later:
            return f"{self.first} ({self.why})"
        return f"first step {self.first}, later steps {self.later} ({self.why})"


_AUTOREGRESSIVE = {"eagle", "eagle3", "mtp"}
_V1_GRAPHS = _AUTOREGRESSIVE | {"draft_model", "dflash", "extract_hidden_states"}


def drafter_mode(
    speculation: Speculation, mode: Mode, unresolved: Mode, v2: bool, compile_mode: int, version: Version, enforce_eager: bool
) -> Drafter:
    """The drafter's modes. `unresolved` is the mode at configuration time, which 0.11.0 to 0.14.1 read."""
    method = speculation.method or "mtp"
    if enforce_eager:
        return Drafter("NONE", "NONE", "the target is eager")
    if v2 and version >= V("0.22.0"):
        return _v2(method, mode)
    if method not in _V1_GRAPHS:
        return Drafter("NONE", "NONE", f"{method} has no draft graphs on V1", False)
    if speculation.enforce_eager:
        return Drafter("NONE", "NONE", "speculative_config.enforce_eager")
    if version < V("0.11.0"):
        on: Mode = "PIECEWISE" if compile_mode == VLLM_COMPILE and unresolved != "NONE" else "NONE"
        return Drafter(on, on, "follows compilation")
    if version < V("0.15.0"):
        if has_piecewise(unresolved) and compile_mode == VLLM_COMPILE:
            return Drafter("PIECEWISE", "PIECEWISE", "the configured mode has a piecewise part")
        return Drafter("NONE", "NONE", f"V1 drafters have only piecewise graphs and {unresolved} has no piecewise part")
    if mixed_mode(mode) in ("PIECEWISE", "FULL"):
        return Drafter("PIECEWISE", "PIECEWISE", "V1 drafters have only piecewise graphs")
    return Drafter("NONE", "NONE", f"V1 drafters have only piecewise graphs and {mode} has none for mixed batches")


def _v2(method: str, mode: Mode) -> Drafter:
    full = decode_mode(mode) == "FULL"
    later: Mode = "FULL_DECODE_ONLY" if full else "NONE"
    if method in _AUTOREGRESSIVE:
        why = (
            "later draft steps have full graphs"
            if full
            else f"V2 draft steps after the first have only full graphs and decode of {mode} is not FULL"
        )
        return Drafter(mode, later, why)
    if method in ("dflash", "dspark"):
        return Drafter(later, later, "block drafting follows the target's decode mode")
    return Drafter("NONE", "NONE", f"{method} has no draft graphs on V2", False)
