"""Call summaries: the effects of a function with those of the functions it calls put in place, in execution order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from graphlint.project.effect import CallSite, Effect, Launch
from graphlint.project.effects import Effects
from graphlint.project.index import Index
from graphlint.project.kernels import KernelDef
from graphlint.project.launches import kernel_effects
from graphlint.project.substitute import Substitution
from graphlint.project.types import Types
from graphlint.project.views import Views
from graphlint.project.written import Written

#: calls nested deeper than this are not followed (their effects are unknown)
MAX_DEPTH = 7
#: a summary longer than this keeps its first effects only; nothing per step in the engines read comes near
MAX_EFFECTS = 6000


class Expander:
    """Expands calls. A summary is in the terms of the function's own parameters, for one dynamic class of `self`."""

    def __init__(self, index: Index, types: Types, views: Views, effects: Effects, prepare: Callable[[Iterable[KernelDef]], None]) -> None:
        self.index = index
        self.types = types
        self.views = views
        self.effects = effects
        self._prepare = prepare
        self._memo: dict[tuple[str, str | None], list[Effect]] = {}
        self._active: set[tuple[str, str | None]] = set()
        #: functions whose summary does not show all that they call: no steps, whatever their names
        self.cut: set[str] = set()

    def of(self, function_id: str, self_class: str | None, depth: int = 0) -> list[Effect]:
        """Effects of a function and of what it calls."""
        key = (function_id, self_class)
        known = self._memo.get(key)
        if known is not None:
            return known
        if key in self._active or depth > MAX_DEPTH:
            return []
        self._active.add(key)
        written = self.written
        out: list[Effect] = []
        for item in self.effects.of(self.index.functions[function_id], self_class):
            if isinstance(item, Effect):
                if item.kind != "rebind" and written.matters(item.target, self_class):
                    out.append(item)
            elif len(out) >= MAX_EFFECTS:
                self.cut.add(function_id)
            elif isinstance(item, Launch):
                if written.touches(item, self_class):
                    out.extend(kernel_effects(item, lambda target: written.matters(target, self_class)))
            else:
                out.extend(self._inlined(item, self_class, depth))
        self._active.discard(key)
        if depth == 0 or len(self._active) == 0 or depth <= MAX_DEPTH // 2:
            self._memo[key] = out
        return out

    @cached_property
    def written(self) -> Written:
        """What summaries keep. The models of the kernels that they will ask for are built together here."""
        written = Written(self.index, self.views, self.effects)
        self._prepare(written.kernels)
        return written

    def callee_class(self, site: CallSite, self_class: str | None) -> str | None:
        """Dynamic class of `self` inside the called function."""
        callee = self.index.functions[site.function]
        if callee.owner is None:
            return None
        receiver = self.views.receiver(site.call)
        if receiver is None:
            return self_class if callee.fact.parent is not None else callee.owner
        found = self.types.of(receiver, self_class)
        return found if found is not None and callee.owner in self.index.mro(found) else callee.owner

    def _inlined(self, site: CallSite, self_class: str | None, depth: int) -> list[Effect]:
        inner = self.of(site.function, self.callee_class(site, self_class), depth + 1)
        if not inner:
            return []
        substitute = Substitution(self.views.bind_arguments(site.function, site.call, self.views.receiver_of(site)))
        out: list[Effect] = []
        for effect in inner:
            target = substitute(effect.target)
            if target is not effect.target and not self.written.matters(target, self_class):
                continue
            out.append(
                Effect(
                    effect.kind,
                    target,
                    None if effect.lo is None else substitute(effect.lo),
                    None if effect.hi is None else substitute(effect.hi),
                    effect.guards,
                    effect.withs,
                    effect.how,
                    effect.site,
                    (site.site, *effect.chain),
                    effect.kernel,
                    effect.pointer,
                    effect.exact,
                    None if effect.inner is None else (substitute(effect.inner[0]), substitute(effect.inner[1])),
                    effect.inside,
                    effect.value_only,
                    effect.mirror,
                )
            )
        return out
