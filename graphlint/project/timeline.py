"""Timelines: for each step function, the ordered accesses to every buffer with their extents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from graphlint.extents import UNSURE, Extent
from graphlint.facts.expr import ZERO, Expr, strip
from graphlint.project.buffers import Buffer, Buffers
from graphlint.project.counts import Bias, Counts
from graphlint.project.effect import CallSite, Effect
from graphlint.project.effects import Effects
from graphlint.project.expand import MAX_DEPTH, Expander
from graphlint.project.index import FunctionDef, Index
from graphlint.project.regions import Regions, capturing, dummy_step, runs_once
from graphlint.project.types import Types
from graphlint.project.views import View, Views, run_of


class Access(NamedTuple):
    """One access to one buffer at one point of a step. `lo`/`hi` are extents along `axis` (hi unknown and whole=True: all of it)."""

    order: int
    buffer: Buffer
    effect: Effect
    view: View
    lo: Extent
    hi: Extent
    #: the largest that the bound may be (`hi` of a write is the smallest)
    hi_max: Extent
    hi_expr: Expr | None
    lo_expr: Expr | None
    whole: bool
    axis: int
    root: FunctionDef
    self_class: str | None


class Root(NamedTuple):
    """A function that nothing in the project calls, for one dynamic class."""

    function: FunctionDef
    self_class: str | None


class Timelines:
    """Roots and their accesses (memoised)."""

    def __init__(
        self,
        index: Index,
        types: Types,
        views: Views,
        counts: Counts,
        effects: Effects,
        expander: Expander,
        buffers: Buffers,
        regions: Regions,
    ) -> None:
        self.index = index
        self.types = types
        self.views = views
        self.counts = counts
        self.effects = effects
        self.expander = expander
        self.buffers = buffers
        self.regions = regions
        self._memo: dict[tuple[str, str | None], list[Access]] = {}
        self._roots: list[Root] | None = None
        self._callers: dict[str, set[str]] | None = None

    def callers(self) -> dict[str, set[str]]:
        """Function id -> ids of functions of real steps that call it."""
        if self._callers is None:
            self._callers = defaultdict(set)
            for function in self.index.functions.values():
                if function.fact.opaque or runs_once(function.fact.name) or dummy_step(function.fact.name):
                    continue  # what a dummy batch calls is a step of its own as well
                classes = self.index.dynamic_classes(function)
                for cls in classes:
                    for item in self.effects.of(function, cls):
                        if isinstance(item, CallSite) and not self._dispatched_down(function, item):
                            self._callers[item.function].add(function.id)
        return self._callers

    def _dispatched_down(self, caller: FunctionDef, site: CallSite) -> bool:
        """A base class calls what a subclass overrides: the override stays a root of its own, there may be many such subclasses."""
        owner = self.index.functions[site.function].owner
        return (
            owner is not None
            and caller.owner is not None
            and owner != caller.owner
            and owner not in self.index.mro(caller.owner)
            and (caller.owner in self.index.mro(owner))
        )

    def roots(self) -> list[Root]:
        """Per-step functions that no other per-step function calls, and those that are too far below one to be seen from it."""
        if self._roots is None:
            callees: dict[str, list[str]] = defaultdict(list)
            for callee, callers in self.callers().items():
                for caller in callers:
                    callees[caller].append(callee)
            steps = [function.id for function in self.index.functions.values() if self._may_be_root(function)]
            found = [one for one in steps if not self.callers().get(one)]
            seen: dict[str, int] = {}
            self._descend(found, callees, seen)
            while unseen := [one for one in steps if one not in seen]:
                below = [one for one in unseen if any(caller in seen for caller in self.callers()[one])] or unseen[:1]
                found.extend(below)
                self._descend(below, callees, seen)
            self._roots = [Root(self.index.functions[one], cls) for one in self._whole(found, callees) for cls in self._classes(one)]
        return self._roots

    def _whole(self, tops: list[str], callees: dict[str, list[str]]) -> list[str]:
        """`tops`, but what they call instead of those whose summary is cut short: a scheduler's loop is no step."""
        found: dict[str, None] = {}
        work = list(reversed(tops))
        while work:
            one = work.pop()
            if one not in found:
                found[one] = None
                for cls in self._classes(one):
                    self.expander.of(one, cls)
                if one in self.expander.cut:
                    work.extend(callees.get(one, ()))
        return [one for one in found if one not in self.expander.cut]

    def _classes(self, function: str) -> list[str | None]:
        return self.index.dynamic_classes(self.index.functions[function])

    @staticmethod
    def _may_be_root(function: FunctionDef) -> bool:
        fact = function.fact
        return not (fact.opaque or runs_once(fact.name) or (fact.parent is not None and not fact.name.startswith("<lambda")))

    def _descend(self, tops: list[str], callees: dict[str, list[str]], seen: dict[str, int]) -> None:
        """Notes every function that a summary of one of `tops` includes, with the depth it is included at."""
        level = tops
        for depth in range(MAX_DEPTH + 1):
            for one in level:
                seen[one] = depth
            level = sorted({callee for one in level for callee in callees.get(one, ()) if seen.get(callee, MAX_DEPTH + 1) > depth + 1})

    def of(self, root: Root) -> list[Access]:
        """Accesses of a root in execution order."""
        key = (root.function.id, root.self_class)  # a definition holds all its facts: it is no cheap key itself
        known = self._memo.get(key)
        if known is None:
            known = self._memo[key] = self.accesses(self.expander.of(*key), root.function, root.self_class)
        return known

    def accesses(self, effects: list[Effect], function: FunctionDef, cls: str | None) -> list[Access]:
        """Effects as accesses to buffers; those on values that are no buffer drop out."""
        out: list[Access] = []
        for order, effect in enumerate(effects):
            if effect.kind in ("rebind", "escape"):
                continue
            access = self._access(order, effect, function, cls)
            if access is not None:
                out.append(access)
        return out

    def _access(self, order: int, effect: Effect, function: FunctionDef, cls: str | None) -> Access | None:
        view = self.views.of(effect.target, cls)
        if view is None:
            return None
        buffer = self.buffers.of(view.path, cls, function.module)
        if buffer is None:
            return None
        bias: Bias = "lower" if effect.kind in ("write", "fill", "update") else "upper"
        by_row = view.row and effect.kernel is None and effect.kind in ("write", "fill")
        rows = run_of(view.lo) if by_row and view.lo is not None else None
        if rows is not None:  # a loop writes row by row
            view = View(view.path, 0, None, rows, view.exact)
        lo_expr, hi_expr, axis = view.lo, view.hi, view.axis
        whole = view.whole
        if whole and view.chosen_by is not None and effect.kind == "read":
            size = _size(view.chosen_by)  # a storage for each size: all of it is as many lanes
            if self.counts.of(size, cls, function.module).unit is not None:
                whole, hi_expr = False, size
        if effect.kernel is not None:
            whole = False
            interval = (effect.lo, effect.hi)
            if effect.inner is not None and view.whole and self.counts.of(effect.hi, cls, function.module).unit is None:
                interval, axis = effect.inner, 1
            if interval[0] is not None and interval[0] != ZERO:
                lo_expr = interval[0] if view.lo is None else ("bin", "+", view.lo, interval[0])
            bounded = view.hi is not None and effect.kind == "read" and axis == view.axis
            if bounded and self.counts.of(interval[1], cls, function.module).state in (None, UNSURE):
                pass  # the slice that was handed over bounds what can be read of it
            elif interval[1] is not None and strip(interval[1])[0] != "unknown":
                hi_expr = interval[1] if view.lo is None else ("bin", "+", view.lo, interval[1])
        lo = Extent.number(0) if lo_expr is None else self.counts.of(lo_expr, cls, function.module, bias)
        hi = Extent.unknown() if hi_expr is None else self.counts.of(hi_expr, cls, function.module, bias)
        hi_max = hi if hi_expr is None or bias == "upper" else self.counts.of(hi_expr, cls, function.module, "cover")
        if hi_expr is None and not whole:
            whole = lo_expr is None and effect.kernel is None
        return Access(order, buffer, effect, view, lo, hi, hi_max, hi_expr, lo_expr, whole, axis, function, cls)

    def captured_reads(self) -> list[Access]:
        """Reads by functions that run under capture, with their padded extents, and of what those who ask for it put in place for them."""
        found: list[Access] = []
        for function_id in self.regions.captured:
            found.extend(access for access in self._accesses_of(function_id) if access.effect.kind == "read")
        for function_id in sorted(self.regions.asking):
            found.extend(access for access in self._own_reads(function_id) if access.effect.how.startswith(("stored", "kept")))
        for function_id in sorted(self.regions.blocks - set(self.regions.captured)):
            found.extend(access for access in self._own_reads(function_id) if capturing(access.effect.withs))
        return found

    def _own_reads(self, function_id: str) -> Iterator[Access]:
        for access in self._accesses_of(function_id):
            if access.effect.kind == "read" and access.effect.site.function == function_id:
                yield access

    def _accesses_of(self, function_id: str) -> Iterator[Access]:
        function = self.index.functions[function_id]
        for cls in self._classes(function_id):
            yield from self.accesses(self.expander.of(function_id, cls), function, cls)


def _size(key: Expr) -> Expr:
    """The size that `buffers[size]` or `buffers[size - 1]` is for."""
    inner = strip(key)
    return inner[2] if inner[0] == "bin" and inner[1] == "-" and strip(inner[3]) == ("const", 1) else key
