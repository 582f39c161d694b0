"""Real padding and capture bugs of serving engines, as data.

`vllm.toml`, `sglang.toml` and `elsewhere.toml` hold bugs that were fixed or reported; `open.toml` holds faults that vLLM 0.33.0 still
carries. The facts come from the linked pull requests and issues and from comparing releases.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from bench.data import BENCH, read_toml


class Bug(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One bug: what is wrong, where, from when to when, and how it shows itself."""

    id: str
    project: str
    #: kind of fault, in the words of the field (`stale-index`, `mode-gate`, ...)
    kind: str = msgspec.field(name="class")
    title: str
    #: what makes the fault visible on a running engine
    visible: str
    url: str = ""
    see_also: tuple[str, ...] = ()
    #: path inside the release, e.g. "vllm/v1/worker/gpu/block_table.py"
    file: str = ""
    also_files: tuple[str, ...] = ()
    #: `Class.method`, function or kernel names; nested definitions belong to them
    symbols: tuple[str, ...] = ()
    #: last release (or commit) with the bug, and the first without it
    bad: str = ""
    good: str = ""
    first_release: str = ""
    #: month of the report or fix where no release or commit is known
    dated: str = ""
    #: lines of the fault in `bad`
    lines: tuple[int, ...] = ()
    #: rules whose subject this bug is; empty where the catalogue has none
    rules: tuple[str, ...] = ()
    #: how far an analyser must see; "no" needs knowledge that is not in the source
    reach: Literal["intra", "class", "project", "no"] | None = None
    #: how sure the reading of an open fault is
    certainty: Literal["high", "medium", "low", "report", "audit"] | None = None
    scored: bool


class _File(msgspec.Struct, forbid_unknown_fields=True):
    bug: list[Bug]


@cache
def load_bugs() -> tuple[Bug, ...]:
    """Every fixed or reported bug, in the order of the files."""
    return tuple(bug for name in ("vllm", "sglang", "elsewhere") for bug in read_toml(BENCH / "bugs" / f"{name}.toml", _File).bug)


@cache
def load_open_faults() -> tuple[Bug, ...]:
    """Faults that are open in vLLM 0.33.0."""
    return tuple(read_toml(BENCH / "bugs" / "open.toml", _File).bug)


def scored_bugs() -> tuple[Bug, ...]:
    """Bugs whose last bad and first good release are both on the package index."""
    return tuple(bug for bug in load_bugs() if bug.scored)
