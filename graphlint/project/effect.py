"""The effect model: one access to one storage, with the place and the way it was reached."""

from __future__ import annotations

from typing import Literal, NamedTuple

from graphlint.facts.expr import Expr
from graphlint.facts.kernels import Span
from graphlint.project.kernels import KernelDef

EffectKind = Literal["write", "fill", "update", "read", "rebind", "escape"]


class Site(NamedTuple):
    """A place in the source, with the conditions of its function that hold there."""

    path: str
    span: Span
    function: str
    guards: tuple[Expr, ...] = ()


class Effect(NamedTuple):
    """One access to the storage that `target` names.

    lo, hi: interval within `target` (None: all of it), as kernels state it; `how` says what does it in words; `chain` are the call sites
    it was reached through, outermost first. `guards` are in the terms of the function at `site`, the rest in those of the
    function that was asked for. `exact` is False when the interval or the condition is not fully understood.
    """

    kind: EffectKind
    target: Expr
    lo: Expr | None
    hi: Expr | None
    guards: tuple[Expr, ...]
    withs: tuple[Expr, ...]
    how: str
    site: Site
    chain: tuple[Site, ...] = ()
    kernel: str | None = None
    pointer: str | None = None
    exact: bool = True
    #: interval along the second dimension, when the first one is counted by the kernel too
    inner: tuple[Expr, Expr] | None = None
    #: the load or store inside the kernel (`site` is the launch)
    inside: Site | None = None
    #: a kernel loads it but uses it neither as an address, nor as a bound, nor as a condition
    value_only: bool = False
    #: one half of a mirrored buffer copied to the other: stale lanes stay stale
    mirror: bool = False


class CallSite(NamedTuple):
    """A call to a function of the project, to be expanded in place."""

    function: str
    call: Expr
    guards: tuple[Expr, ...]
    withs: tuple[Expr, ...]
    site: Site


class Launch(NamedTuple):
    """A kernel launch: parameter -> argument and grid dimensions in the terms of the function at `site`."""

    kernel: KernelDef
    arguments: dict[str, Expr]
    grid: tuple[Expr, ...]
    guards: tuple[Expr, ...]
    withs: tuple[Expr, ...]
    site: Site


#: what a function does, in source order
Item = Effect | CallSite | Launch
