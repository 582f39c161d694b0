"""What a kernel as a whole writes of one pointer: its segments merged."""

from __future__ import annotations

from dataclasses import dataclass

from graphlint.facts.expr import UNKNOWN, Expr
from graphlint.facts.kernels import KernelModel, Segment
from graphlint.kernel_models.conditions import negate
from graphlint.kernel_models.linear import add, constant, plain, poly, same


@dataclass(frozen=True)
class Interval:
    """Half-open interval of lanes, written when every condition of `when` holds (those that are not part of the bounds)."""

    lo: Expr
    hi: Expr
    when: tuple[Expr, ...] = ()
    exact: bool = True

    @property
    def conditional(self) -> bool:
        """Whether a condition decides if the interval is written."""
        return bool(self.when)


@dataclass(frozen=True)
class Fill:
    """An interval that gets a pad value."""

    lo: Expr
    hi: Expr
    value: Expr
    when: tuple[Expr, ...]
    exact: bool

    @property
    def conditional(self) -> bool:
        """Whether a condition decides if the interval is filled."""
        return bool(self.when)


@dataclass(frozen=True)
class Coverage:
    """Stores to one pointer over the whole grid.

    `union` joins all intervals that meet ([0, n) and [n, max) give [0, max)). For a pointer addressed as rows the intervals count rows, and
    `inner` has the joined intervals inside a row when every store goes to the same rows.
    """

    pointer: str
    live: tuple[Interval, ...]
    fills: tuple[Fill, ...]
    union: tuple[Interval, ...]
    inner: tuple[Interval, ...]
    #: some lanes are scattered to loaded indices: no interval tells which
    indirect: bool
    #: every store is understood
    exact: bool


def coverage(model: KernelModel, pointer: str) -> Coverage:
    """Merges the stores and atomics of `pointer`; a pointer that the kernel never stores to gives an empty coverage."""
    stores = [segment for segment in model.segments if segment.pointer == pointer and segment.kind != "load"]
    direct = _uncondition([segment for segment in stores if segment.role != "indirect"])
    known = [segment for segment in direct if UNKNOWN not in (segment.lo, segment.hi)]
    fills = tuple(
        Fill(segment.lo, segment.hi, segment.value or UNKNOWN, segment.when, segment.exact) for segment in known if segment.role == "fill"
    )
    rows = known[0] if known else None
    inner: tuple[Interval, ...] = ()
    if rows is not None and all(
        segment.inner is not None and same(segment.lo, rows.lo) and same(segment.hi, rows.hi) for segment in known
    ):
        parts = [Interval(segment.inner[0], segment.inner[1], segment.when, segment.exact) for segment in known if segment.inner]
        inner = tuple(join(parts))
    return Coverage(
        pointer=pointer,
        live=tuple(join([_interval(segment) for segment in known if segment.role == "lane"])),
        fills=fills,
        union=tuple(join([_interval(segment) for segment in known])),
        inner=inner,
        indirect=any(segment.role == "indirect" for segment in stores),
        exact=all(segment.exact for segment in stores),
    )


def _interval(segment: Segment) -> Interval:
    return Interval(segment.lo, segment.hi, segment.when, segment.exact)


def join(parts: list[Interval]) -> list[Interval]:
    """Joins intervals that meet or overlap by a provable amount; the order of the first parts is kept."""
    out = list(parts)
    changed = True
    while changed:
        changed = False
        for i, a in enumerate(out):
            for j, b in enumerate(out):
                merged = _meet(a, b) if i != j else None
                if merged is not None:
                    out[min(i, j)] = merged
                    del out[max(i, j)]
                    changed = True
                    break
            if changed:
                break
    return out


def _meet(a: Interval, b: Interval) -> Interval | None:
    """a followed by b as one interval, None when that is not provable."""
    exact = a.exact and b.exact
    start, touch, end = _gap(b.lo, a.lo), _gap(a.hi, b.lo), _gap(b.hi, a.hi)
    if start is not None and start >= 0 and end is not None and end <= 0 and _implies(b.when, a.when):
        return Interval(a.lo, a.hi, a.when, a.exact or (start == 0 == end and b.exact))
    if touch is None or touch < 0 or not (_implies(a.when, b.when) and _implies(b.when, a.when)):
        return None
    if touch == 0 or (end is not None and end >= 0):
        return Interval(a.lo, b.hi, a.when, exact)
    return None


def _implies(strong: tuple[Expr, ...], weak: tuple[Expr, ...]) -> bool:
    """Whether the conditions of `strong` include those of `weak`."""
    return {plain(cond) for cond in weak} <= {plain(cond) for cond in strong}


def _gap(a: Expr, b: Expr) -> int | None:
    if UNKNOWN in (a, b):
        return None
    return constant(add(poly(plain(a)), poly(plain(b)), -1))


def _uncondition(segments: list[Segment]) -> list[Segment]:
    """Two stores of the same lanes under opposite conditions are one store without that condition."""
    out = list(segments)
    changed = True
    while changed:
        changed = False
        for i, a in enumerate(out):
            for j in range(i + 1, len(out)):
                merged = _opposite(a, out[j])
                if merged is not None:
                    out[i] = merged
                    del out[j]
                    changed = True
                    break
            if changed:
                break
    return out


def _opposite(a: Segment, b: Segment) -> Segment | None:
    if len(a.when) != len(b.when) or not a.when or a.inner != b.inner:
        return None
    when_a, when_b = [plain(cond) for cond in a.when], [plain(cond) for cond in b.when]
    odd = [position for position, cond in enumerate(when_a) if cond != when_b[position]]
    if len(odd) != 1 or negate(when_a[odd[0]]) != when_b[odd[0]] or not (same(a.lo, b.lo) and same(a.hi, b.hi)):
        return None
    when = tuple(cond for position, cond in enumerate(a.when) if position != odd[0])
    role = a.role if a.role == b.role else "lane"
    return Segment(a.pointer, a.kind, a.lo, a.hi, role, a.axis, a.value, when, a.exact and b.exact, a.inner, a.span)
