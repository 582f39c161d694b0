"""Call summaries: the effects of a function with those of the functions it calls put in place, in execution order."""

from __future__ import annotations

from functools import cached_property

from graphlint.facts.expr import Expr, children, strip
from graphlint.project.effect import CallSite, Effect
from graphlint.project.effects import Effects
from graphlint.project.index import Index
from graphlint.project.substitute import Substitution
from graphlint.project.types import Types
from graphlint.project.views import HALVES, Views

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
                if item.kind != "rebind" and self._matters(item.target):
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
            if target is not effect.target and not self._matters(target):
                continue
            out.append(
                Effect(
                    effect.kind,
                    target,
                    None if effect.lo is None else substitute(effect.lo),
                    None if effect.hi is None else substitute(effect.hi),
                    effect.value,
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

    def _matters(self, target: Expr) -> bool:
        """It may name a storage that somebody writes in place: others cannot go stale, and they are most of what code passes around."""
        name = terminal(target)
        return name is None or name in self.written

    @cached_property
    def written(self) -> frozenset[str]:
        """Names of attributes whose storage is written in place anywhere, directly or through a parameter."""
        names: set[str] = set()
        parameters: set[Expr] = set()
        calls: list[tuple[str, CallSite]] = []
        for function in self.index.functions.values():
            if function.fact.opaque:
                continue
            for item in self.effects.of(function, function.owner):
                if isinstance(item, CallSite):
                    calls.append((item.function, item))
                elif item.kind in ("write", "fill", "update"):
                    self._note(item.target, names, parameters)
                    view = self.views.of(item.target, function.owner)  # through aliases, properties, getters and pointer tables
                    if view is not None:
                        self._note(view.path, names, parameters)
        grown = True
        while grown:
            before = len(parameters) + len(names)
            for callee, site in calls:
                for key, argument in self.views.bind_arguments(callee, site.call, None).items():
                    if key in parameters:
                        self._note(argument, names, parameters)
            grown = len(parameters) + len(names) > before
        return frozenset(names)

    @staticmethod
    def _note(target: Expr, names: set[str], parameters: set[Expr]) -> None:
        for part in alternatives(target):
            name = terminal(part)
            if name is not None:
                names.add(name)
            root = strip(part)
            while root[0] in ("index", "iter", "item") or (root[0] == "attr" and root[2] in HALVES):
                root = strip(root[1])
            if root[0] == "param":
                parameters.add(root)
            elif root[0] == "call":
                names.update(all_names(root))


def alternatives(expr: Expr) -> list[Expr]:
    """The branches of a merge, or the expression itself."""
    expr = strip(expr)
    if expr[0] in ("if", "phi", "or"):
        return [part for child in (expr[2:] if expr[0] == "if" else expr[1:]) for part in alternatives(child)]
    return [expr]


def all_names(expr: Expr) -> set[str]:
    """Every attribute name in an expression."""
    found: set[str] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if node[0] == "attr":
            found.add(node[2])
        stack.extend(children(node))
    return found


def terminal(target: Expr) -> str | None:
    """Name of the attribute that holds the storage; None when the target is no plain chain of attributes and indices."""
    target = strip(target)
    while True:
        if target[0] in ("index", "iter"):
            target = strip(target[1])
        elif target[0] == "attr":
            if target[2] not in HALVES:
                return str(target[2])
            target = strip(target[1])
        else:
            return None
