"""The unit algebra: linear forms over counts that have a unit (requests, tokens, pages) and a state (live, padded, capacity).

`0 <= live <= padded <= capacity` within a unit is the only ordering known; everything else compares as None (unknown), which never means
safe or unsafe.
"""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["live", "padded", "capacity", "unsure"]
Unit = Literal["requests", "tokens", "pages", "rows"]

LIVE: State = "live"
PADDED: State = "padded"
CAPACITY: State = "capacity"
#: live on some paths and padded on others, or padded only in some modes
UNSURE: State = "unsure"

RANK: dict[State, int] = {"live": 0, "padded": 1, "capacity": 2}


class Atom(msgspec.Struct, frozen=True, order=True):
    """One count. `tag` tells counts of the same unit and state apart (num_decodes from num_reqs, one descriptor from another)."""

    unit: Unit
    state: State
    tag: str = ""

    def __str__(self) -> str:
        return f"{self.state} {self.unit}"


class Extent(msgspec.Struct, frozen=True):
    """sum(coefficient x atom) + constant, or unknown (`terms` is None)."""

    terms: tuple[tuple[Atom, int], ...] | None
    constant: int = 0

    @staticmethod
    def of(atom: Atom) -> Extent:
        """The count `atom`."""
        return Extent(((atom, 1),))

    @staticmethod
    def number(value: int) -> Extent:
        """A known number."""
        return Extent((), value)

    @staticmethod
    def unknown() -> Extent:
        """A count nothing is known of."""
        return Extent(None)

    @property
    def known(self) -> bool:
        """Anything is known of it."""
        return self.terms is not None

    @property
    def main(self) -> Atom | None:
        """The atom of a form that is one count (times a factor, plus a constant), or None."""
        return self.terms[0][0] if self.terms is not None and len(self.terms) == 1 else None

    @property
    def unit(self) -> Unit | None:
        """The unit all its atoms share, or None."""
        units = {atom.unit for atom, _ in self.terms or ()}
        return units.pop() if len(units) == 1 else None

    @property
    def state(self) -> State | None:
        """The state of the whole: capacity and padded win over live; None when a number or unknown."""
        states = {atom.state for atom, _ in self.terms or ()}
        if not states:
            return None
        if UNSURE in states:
            return UNSURE
        return max(states, key=lambda state: RANK[state])

    def add(self, other: Extent, sign: int = 1) -> Extent:
        """self + sign * other."""
        if self.terms is None or other.terms is None:
            return Extent.unknown()
        merged = dict(self.terms)
        for atom, factor in other.terms:
            merged[atom] = merged.get(atom, 0) + sign * factor
        return Extent(tuple(sorted((a, f) for a, f in merged.items() if f)), self.constant + sign * other.constant)

    def scale(self, factor: int) -> Extent:
        """self * factor."""
        if self.terms is None:
            return self
        if factor == 0:
            return Extent.number(0)
        return Extent(tuple((a, f * factor) for a, f in self.terms), self.constant * factor)

    def retype(self, unit: Unit) -> Extent:
        """The same states counted in another unit (requests x tokens per request, tokens // tokens per request)."""
        if self.terms is None:
            return self
        return Extent(tuple((Atom(unit, a.state, a.tag), f) for a, f in self.terms), 0)

    def __str__(self) -> str:
        if self.terms is None:
            return "unknown"
        parts = [f"{'' if factor == 1 else f'{factor} x '}{atom}" for atom, factor in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)


def beyond(reader: Extent, writer: Extent) -> bool | None:
    """Does `reader` reach lanes that `writer` does not, in some batch? True, False, or None when unknown.

    True only within one unit and between states that are certain: padded beyond live, capacity beyond either.
    """
    if reader.terms is None or writer.terms is None:
        return None
    if not writer.terms:
        return None if not reader.terms or reader.state in (None, UNSURE) else True
    if not reader.terms:
        return False
    if reader.unit is None or writer.unit is None or reader.unit != writer.unit:
        return None
    if reader.state == UNSURE or writer.state == UNSURE or reader.state is None or writer.state is None:
        return None
    return RANK[reader.state] > RANK[writer.state]
