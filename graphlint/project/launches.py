"""Kernel launches: the kernel's segments in the terms of the caller."""

from __future__ import annotations

from collections.abc import Callable

from graphlint.facts.expr import NONE, UNKNOWN, Expr, strip
from graphlint.facts.model import Event
from graphlint.project.effect import Effect, EffectKind, Launch, Site
from graphlint.project.index import Index
from graphlint.project.kernels import KernelDef
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


def launch_of(kernel: KernelDef, call: Expr, items: tuple[Expr, ...], event: Event, site: Site, index: Index) -> Launch:
    """The launch that `call` (of `kernel[items]`) is."""
    arguments: dict[str, Expr] = {}
    if not any(arg[0] == "star" for arg in call[2]):
        arguments.update(zip(kernel.source.params, call[2], strict=False))
    arguments.update({name: value for name, value in call[3] if name in kernel.source.params})
    return Launch(kernel, arguments, tuple(grid_of(items, index)), event.guards, event.withs, site)


def kernel_effects(launch: Launch, keep: Callable[[Expr], bool]) -> list[Effect]:
    """What a launch does to those of its arguments that `keep` is true of."""
    kernel, site = launch.kernel, launch.site
    model = kernel.model
    arguments: dict[str, Expr] = dict(model.defaults)
    arguments.update(launch.arguments)
    kept = {name: target for name, target in arguments.items() if strip(target) != NONE and keep(target)}
    change = _Arguments(arguments, launch.grid, kernel.module)
    effects: list[Effect] = []
    for segment in model.segments:
        target = kept.get(segment.pointer)
        if target is None:
            continue
        kind: EffectKind
        if segment.kind == "load":
            kind = "read"
        elif segment.role == "indirect" or segment.kind == "atomic":
            kind = "update"
        else:
            kind = "fill" if segment.role == "fill" else "write"
        effects.append(
            Effect(
                kind,
                target,
                change(segment.lo),
                change(segment.hi),
                launch.guards,
                launch.withs,
                f"kernel {model.qualname}",
                site,
                (),
                kernel.id,
                segment.pointer,
                segment.exact,
                (change(segment.inner[0]), change(segment.inner[1])) if segment.inner is not None else None,
                Site(kernel.path, segment.span, kernel.id),
                segment.kind == "load" and segment.pointer not in kernel.steering,
            )
        )
    return effects


class _Arguments:
    """Rewrites expressions of a kernel into the caller's; shared ones once."""

    def __init__(self, arguments: dict[str, Expr], grid: tuple[Expr, ...], module: str) -> None:
        self.arguments = arguments
        self.grid = grid
        self.module = module
        self._memo: dict[int, Expr] = {}

    def __call__(self, expr: Expr) -> Expr:
        op = expr[0]
        if op == "param":
            return self.arguments.get(expr[2], UNKNOWN)
        if op == "nprog":
            return self.grid[expr[1]] if expr[1] < len(self.grid) else ("const", 1)
        if op == "global":
            return ("global", expr[1], self.module)
        if op in ("const", "local", "func", "unknown", "pid"):
            return expr
        known = self._memo.get(id(expr))
        if known is None:
            if op == "load":
                base = self.arguments.get(expr[1])
                known = ("index", base, self(expr[2])) if base is not None else UNKNOWN
            else:
                known = rebuild(expr, self)
            self._memo[id(expr)] = known
        return known
