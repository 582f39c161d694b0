"""What the ecosystem tests hold graphlint to: `floors.toml`, raised by hand when a measured figure has become better."""

from __future__ import annotations

import msgspec

from bench.data import BENCH, read_toml


class MutantFloor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of one release: how many harmful mutants must be noticed, and how many redundant ones may be."""

    harmful: int
    redundant: int


class Floors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Recorded figures; a part that is missing was not measured yet."""

    #: ids of the real bugs that are found (in the bad release, gone in the good one)
    found: tuple[str, ...] = ()
    #: most findings a release may carry
    noise: dict[str, int] = {}
    mutants: dict[str, MutantFloor] = {}


def load_floors() -> Floors:
    """The recorded figures."""
    return read_toml(BENCH / "floors.toml", Floors)
