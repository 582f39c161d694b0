"""Call summaries: the effects of a function with those of the functions it calls put in place, in execution order."""

from __future__ import annotations

from graphlint.facts.expr import Expr, strip
from graphlint.project.effect import CallSite, Effect
from graphlint.project.effects import Effects
from graphlint.project.index import Index
from graphlint.project.substitute import Substitution
from graphlint.project.types import Types
from graphlint.project.views import Views

#: calls nested deeper than this are not followed (their effects are unknown)
MAX_DEPTH = 7
#: a summary longer than this keeps its first effects only; nothing per step in the engines read comes near
MAX_EFFECTS = 6000


class Expander:
    """Expands calls. A summary is in the terms of the function's own parameters, for one dynamic class of `self`."""

    def __init__(self, index: Index, types: Types, views: Views, effects: Effects) -> None:
        self.index = index
        self.types = types
        self.views = views
        self.effects = effects
        self._memo: dict[tuple[str, str | None], list[Effect]] = {}
        self._active: set[tuple[str, str | None]] = set()

    def of(self, function_id: str, self_class: str | None, depth: int = 0) -> list[Effect]:
        """Effects of a function and of what it calls."""
        key = (function_id, self_class)
        known = self._memo.get(key)
        if known is not None:
            return known
        if key in self._active or depth > MAX_DEPTH:
            return []
        self._active.add(key)
        out: list[Effect] = []
        for item in self.effects.of(self.index.functions[function_id], self_class):
            if isinstance(item, Effect):
                out.append(item)
            elif len(out) < MAX_EFFECTS:
                out.extend(self._inlined(item, self_class, depth))
        self._active.discard(key)
        if depth == 0 or len(self._active) == 0 or depth <= MAX_DEPTH // 2:
            self._memo[key] = out
        return out

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
        callee = self.index.functions[site.function]
        inner = self.of(site.function, self.callee_class(site, self_class), depth + 1)
        if not inner:
            return []
        receiver = self.views.receiver(site.call)
        if receiver is None and callee.fact.name == "__init__":
            receiver = site.call
        substitute = Substitution(self.views.bind_arguments(site.function, site.call, receiver))
        out: list[Effect] = []
        for effect in inner:
            target = substitute(effect.target)
            root = _root(target)
            if root is None:
                continue
            out.append(
                effect._replace(
                    target=target,
                    lo=None if effect.lo is None else substitute(effect.lo),
                    hi=None if effect.hi is None else substitute(effect.hi),
                    value=None if effect.value is None else substitute(effect.value),
                    guards=(*site.guards, *(substitute(guard) for guard in effect.guards)),
                    withs=(*site.withs, *effect.withs),
                    chain=(site.site, *effect.chain),
                )
            )
        return out


def _root(expr: Expr) -> Expr | None:
    """The name at the bottom of a storage expression; None for a value no caller can name."""
    expr = strip(expr)
    while expr[0] in ("attr", "index", "iter", "item"):
        expr = strip(expr[1])
    return None if expr[0] in ("const", "unknown", "local") else expr
