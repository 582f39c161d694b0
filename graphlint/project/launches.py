"""Kernel launches: the kernel's segments in the terms of the caller."""

from __future__ import annotations

from functools import lru_cache

from graphlint.facts.expr import UNKNOWN, Expr, children, strip
from graphlint.facts.kernels import KernelModel
from graphlint.facts.model import Event
from graphlint.project.effect import Effect, EffectKind, Site
from graphlint.project.index import Index, KernelDef
from graphlint.project.substitute import rebuild


def grid_of(items: tuple[Expr, ...], index: Index) -> list[Expr]:
    """Grid dimensions of `kernel[grid]`: a tuple, a number, or a lambda that returns one of these."""
    if len(items) > 1:
        return list(items)
    grid = strip(items[0]) if items else UNKNOWN
    if grid[0] == "func":
        function = index.functions.get(grid[1])
        returned = [e.a for e in function.fact.events if e.kind == "return"] if function else []
        grid = strip(returned[0]) if len(returned) == 1 else UNKNOWN
    if grid[0] in ("tuple", "list"):
        return list(grid[1:])
    return [grid]


def kernel_effects(kernel: KernelDef, call: Expr, items: tuple[Expr, ...], event: Event, site: Site, index: Index) -> list[Effect]:
    """What a launch does to the arguments it is given."""
    model = kernel.model
    arguments: dict[str, Expr] = dict(model.defaults)
    if not any(arg[0] == "star" for arg in call[2]):
        arguments.update(zip(model.params, call[2], strict=False))
    arguments.update({name: value for name, value in call[3] if name in model.params})
    grid = grid_of(items, index)

    def change(expr: Expr) -> Expr:
        op = expr[0]
        if op == "param":
            return arguments.get(expr[2], UNKNOWN)
        if op == "nprog":
            return grid[expr[1]] if expr[1] < len(grid) else ("const", 1)
        if op == "load":
            base = arguments.get(expr[1])
            return ("index", base, change(expr[2])) if base is not None else UNKNOWN
        if op == "global":
            return ("global", expr[1], kernel.module)
        if op in ("const", "local", "func", "unknown", "pid"):
            return expr
        return rebuild(expr, change)

    effects: list[Effect] = []
    steering = _steering(model)
    for segment in model.segments:
        target = arguments.get(segment.pointer)
        if target is None or strip(target) == ("const", None):
            continue
        kind: EffectKind
        if segment.kind == "load":
            kind = "read"
        elif segment.role == "indirect" or segment.kind == "atomic":
            kind = "update"
        else:
            kind = "fill" if segment.role == "fill" else "write"
        lo, hi = change(segment.lo), change(segment.hi)
        inner = (change(segment.inner[0]), change(segment.inner[1])) if segment.inner is not None else None
        effects.append(
            Effect(
                kind,
                target,
                lo,
                hi,
                change(segment.value) if segment.value is not None else None,
                event.guards,
                event.withs,
                f"kernel {model.qualname}",
                site,
                (),
                kernel.id,
                segment.pointer,
                segment.exact,
                inner,
                Site(kernel.path, segment.span, kernel.id),
                segment.kind == "load" and segment.pointer not in steering,
            )
        )
    return effects


@lru_cache(maxsize=4096)
def _steering(model: KernelModel) -> frozenset[str]:
    """Pointers whose loaded values decide an address, a bound or a condition of the kernel."""
    found: set[str] = {deref.source for deref in model.derefs}
    stack: list[Expr] = [test for path in model.exits for test in path.when]
    for segment in model.segments:
        stack.extend((segment.lo, segment.hi, *segment.when, *(segment.inner or ())))
        if not segment.exact:
            found.update(model.pointers if segment.kind == "store" and segment.lo == UNKNOWN else ())
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node[0] == "load":
            found.add(node[1])
        stack.extend(children(node))
    return frozenset(found)
