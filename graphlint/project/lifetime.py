"""The lifetime checker: buffers written to the live extent and read beyond it with nobody filling the tail in between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from graphlint.extents import CAPACITY, LIVE, PADDED
from graphlint.extents.algebra import beyond
from graphlint.facts.expr import Expr
from graphlint.project.regions import dummy_step, is_setter, runs_once
from graphlint.project.substitute import Bare
from graphlint.project.timeline import Access, Timelines

#: shared by one search for stale tails, emptied before it
bare = Bare()


class StaleTail(NamedTuple):
    """`write` covers the live extent of a buffer, `reader` sees more, and nothing on the way fills the rest.

    `captured` says that the reader runs under capture; `fills` are fills of the same buffer that start too late (GL202); `siblings` are
    buffers that the same writer does pad.
    """

    write: Access
    reader: Access
    captured: bool
    late_fills: tuple[Access, ...]
    siblings: tuple[str, ...]
    #: False when the reader belongs to another step function, so that order is not proved
    ordered: bool
    #: the same kernel pads the write slots of these rows: what they compute is stored nowhere
    slots_padded: bool = False


class Elsewhere:
    """Accesses of other roots, by buffer. An object is "self" to its own methods and has its holder's name elsewhere: both are one."""

    def __init__(self, accesses: Iterable[Access] = ()) -> None:
        self._by_attribute: dict[str, list[tuple[str, Access]]] = defaultdict(list)
        for access in accesses:
            self.add(access)

    def add(self, access: Access) -> None:
        """Keep an access."""
        instance, _, attribute = access.buffer.key.partition("|")
        self._by_attribute[attribute].append((instance, access))

    def of(self, key: str) -> list[Access]:
        """Accesses to the buffer of this key, and to those that may be the same object's."""
        instance, _, attribute = key.partition("|")
        return [
            access
            for other, access in self._by_attribute.get(attribute, ())
            if other == instance or "self" in (other, instance) or "*" in (other, instance)
        ]


def stale_tails(timelines: Timelines) -> Iterator[StaleTail]:
    """Every stale tail of the project, one per writer statement and buffer."""
    bare.clear()
    captured = Elsewhere(timelines.captured_reads())
    elsewhere = Elsewhere()
    grouped: list[dict[str, list[Access]]] = []
    fillers = Elsewhere()
    for root in timelines.roots():
        groups: dict[str, list[Access]] = defaultdict(list)
        for access in timelines.of(root):
            groups[access.buffer.key].append(access)
            if access.effect.kind == "read":
                elsewhere.add(access)
            elif access.effect.kind == "fill" or access.whole:
                fillers.add(access)
        grouped.append(groups)
    seen: set[tuple[object, ...]] = set()
    for groups in grouped:
        for key, accesses in groups.items():
            buffer = accesses[0].buffer
            if not buffer.persistent:
                continue
            for write in accesses:
                if not is_live_prefix(write) or _at_start_up(write):
                    continue
                identity = (write.effect.site.path, write.effect.site.span, write.effect.pointer, buffer.name)
                if identity in seen:
                    continue
                found = _first_reader(write, accesses, captured.of(key), elsewhere.of(key), fillers.of(key))
                if found is not None:
                    seen.add(identity)
                    reader, is_captured, late, ordered = found
                    slots = any(_pads_slots(access, write) for others in groups.values() for access in others)
                    yield StaleTail(write, reader, is_captured, late, _siblings(write, groups), ordered, slots)


def _siblings(write: Access, groups: dict[str, list[Access]]) -> tuple[str, ...]:
    """Names of the buffers whose tail the same kernel, or for host code the same function, does fill."""
    effect = write.effect
    return tuple(
        sorted(
            {
                access.buffer.name
                for accesses in groups.values()
                for access in accesses
                if access.effect.kind == "fill"
                and access.buffer.key != write.buffer.key
                and access.effect.kernel == effect.kernel
                and (effect.kernel is not None or access.effect.site.function == effect.site.function)
            }
        )
    )


def _pads_slots(access: Access, write: Access) -> bool:
    effect = access.effect
    if effect.kernel is None or effect.kernel != write.effect.kernel:
        return False
    return effect.kind == "fill" and access.buffer.meaning == "kv write slot"


def _function_name(access: Access) -> str:
    return access.effect.site.function.rsplit(":", 1)[-1].rsplit(".", 1)[-1]


def _at_start_up(access: Access) -> bool:
    """It stands in a function that runs once, before serving or at capture."""
    name = _function_name(access)
    return runs_once(name) and not (access.effect.chain and is_setter(name))


def is_live_prefix(access: Access) -> bool:
    """A write of lanes [0, live) of a buffer."""
    effect = access.effect
    if effect.kind not in ("write", "fill") or access.whole or access.view.row or not access.buffer.persistent:
        return False
    if access.lo_expr is not None and not (access.lo.known and not access.lo.terms):
        return False
    return access.hi.known and access.hi.state == LIVE


def _first_reader(
    write: Access,
    accesses: list[Access],
    captured: list[Access],
    elsewhere: list[Access],
    fillers: list[Access],
) -> tuple[Access, bool, tuple[Access, ...], bool] | None:
    later = [a for a in accesses if a.effect.kind == "read" and a.order > write.order]
    for reader in later:
        if reads_beyond(reader, write) and not excluded(reader, write):
            late: list[Access] = []
            limit = _read_time(reader, write, accesses)
            if not any(covers(a, write, reader, late) for a in accesses if a is not write and (a.order < limit or a.whole)):
                return reader, False, tuple(late), True
    covering: list[Access] = []
    for is_captured, readers in ((True, captured), (False, elsewhere)):
        for reader in readers:
            if reader.root is write.root and not is_captured:
                continue
            if not reads_beyond(reader, write) or (not is_captured and _at_start_up(reader)):
                continue
            late = []
            if any(covers(a, write, reader, late) for a in accesses if a is not write):
                covering.append(reader)
                continue
            if any(covers(a, write, reader, []) for a in fillers if a.root is not write.root):
                continue
            return reader, is_captured, tuple(late), False
    return None


def _read_time(reader: Access, write: Access, accesses: list[Access]) -> int:
    """Order before which a fill still helps the reader.

    A view that is only stored (in metadata, in an attribute, returned) is read later in the step: at the latest when the buffer is
    written anew.
    """
    if not reader.effect.how.startswith(("stored", "kept", "returned")):
        return reader.order
    for access in accesses:
        if access.order > reader.order and is_live_prefix(access) and _moment(access) != _moment(write):
            moment = _moment(access)
            return min(a.order for a in accesses if _moment(a) == moment)
    return 1 << 60


def _moment(access: Access) -> tuple[object, ...]:
    return access.effect.site, access.effect.chain


def reads_beyond(reader: Access, write: Access) -> bool:
    """The reader certainly sees lanes that the writer does not write, in some batch."""
    if _dummy(reader) and not _dummy(write):
        return False  # a dummy batch reads nothing that it did not write itself and that matters
    if reader.effect.kind != "read" or reader.axis != write.axis or reader.effect.value_only:
        return False
    if reader.hi_expr is None or reader.view.row:
        return False
    if write.hi_expr is not None and _same(reader.hi_expr, write.hi_expr):
        return False
    if reader.lo_expr is not None and reader.lo.state in (PADDED, CAPACITY):
        return False
    return beyond(reader.hi, write.hi) is True and not _proved_equal(reader, write)


def _proved_equal(a: Access, b: Access) -> bool:
    """A condition on the way to one of them says that their bounds are equal."""
    if a.hi_expr is None or b.hi_expr is None:
        return False
    bounds = {bare(a.hi_expr), bare(b.hi_expr)}
    for access in (a, b):
        for step in (*access.effect.chain, access.effect.site):
            for guard in step.guards:
                test = bare(guard)
                negated = test[0] == "un" and test[1] == "not"
                test = test[2] if negated else test
                if test[0] == "cmp" and test[1] == ("!=" if negated else "==") and {test[2], test[3]} == bounds:
                    return True
    return False


def _dummy(access: Access) -> bool:
    return any(dummy_step(step.function.rsplit(".", 1)[-1]) for step in (*access.effect.chain, access.effect.site))


def _same(a: Expr, b: Expr) -> bool:
    return bare(a) == bare(b)


def excluded(a: Access, b: Access) -> bool:
    """They cannot both happen in one step: where their ways part, one needs a condition and the other its opposite."""
    left, right = (*a.effect.chain, a.effect.site), (*b.effect.chain, b.effect.site)
    for here, there in zip(left, right, strict=False):
        if here != there:
            if here.function != there.function:
                return False
            held = {bare(guard) for guard in here.guards}
            return any(_opposite(bare(guard)) in held for guard in there.guards)
    return False


def _opposite(guard: Expr) -> Expr:
    return guard[2] if guard[0] == "un" and guard[1] == "not" else ("un", "not", guard)


#: fills of lanes that a mask or an index tensor chooses: how far they reach is not known
_CHOSEN_FILLS = frozenset({".masked_fill_()", ".index_fill_()"})


def covers(cover: Access, write: Access, reader: Access, late: list[Access]) -> bool:
    """`cover` gives every lane between the writer's and the reader's bound a value. A fill that starts too late is collected in `late`."""
    fills = cover.effect.kind in ("write", "fill") or cover.effect.how in _CHOSEN_FILLS
    if not fills or cover.effect.mirror or (cover.root is not write.root and _at_start_up(cover)):
        return False
    if _dummy(cover) and not _dummy(write):
        return False  # a batch of dummy requests is a step of its own
    if excluded(cover, reader) or (cover.root is write.root and excluded(cover, write)):
        return False
    if cover.whole:
        return True
    if cover.axis != write.axis and cover.axis != reader.axis:
        return False
    if cover.effect.kind == "write" and cover.hi_expr is not None and write.hi_expr is not None and _same(cover.hi_expr, write.hi_expr):
        return False
    if cover.lo_expr is not None and cover.lo.known and cover.lo.state in (PADDED, CAPACITY) and beyond(cover.lo, write.hi) is True:
        late.append(cover)
        return False
    if cover.hi_expr is None:
        return True
    if reader.hi_expr is not None and _same(cover.hi_expr, reader.hi_expr):
        return True
    if beyond(reader.hi, cover.hi_max) is True:
        return False
    return not (cover.hi_max.known and cover.hi_max.state == LIVE and cover.hi_max.unit == write.hi.unit)
