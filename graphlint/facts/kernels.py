"""Triton kernels as plain data: as sources, kept with the facts, and what they do to their pointers, built by `graphlint.kernel_models`."""

from __future__ import annotations

from typing import Literal

import msgspec

from graphlint.facts.expr import Expr


class Span(msgspec.Struct, frozen=True, array_like=True):
    """A source range: 1-based lines, 1-based columns in characters, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class KernelSource(msgspec.Struct, frozen=True, array_like=True):
    """One `@triton.jit` function as its source shows it: `pointers` are the parameters it may load from or store to, `stores` those it
    may store to, no others."""

    qualname: str
    params: tuple[str, ...]
    pointers: tuple[str, ...]
    stores: tuple[str, ...]
    span: Span


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """Lanes of one pointer parameter that one load or store statement touches over the whole grid.

    A lane is an index of the buffer's leading dimension: a request, a token, a page entry. `lo` and `hi` bound the half-open interval in
    terms of ("nprog", axis), ("param", kernel, name), ("load", pointer, index, mask, other), constants and arithmetic; UNKNOWN where the
    model does not understand the index.
    """

    pointer: str
    kind: Literal["load", "store", "atomic"]
    lo: Expr
    hi: Expr
    #: "lane": each program handles its own lane(s); "fill": a run of lanes gets a pad value that does not depend on the lane's data;
    #: "indirect": the lane is a loaded value (gather or scatter).
    role: Literal["lane", "fill", "indirect"]
    #: program axis that numbers the lanes (None: a loop or an arange does)
    axis: int | None
    #: value stored (None for loads)
    value: Expr | None
    #: conditions under which the statement runs, outermost first, that are not already folded into lo and hi
    when: tuple[Expr, ...]
    #: every condition understood and the interval exact
    exact: bool
    #: index of a trailing dimension is involved too (row pointer): the interval counts rows, and this is the inner interval
    inner: tuple[Expr, Expr] | None
    span: Span


class ExitPath(msgspec.Struct, frozen=True, array_like=True):
    """A way a program of the grid can end: the conditions, the `return` (or the end of the body), and the stores already done."""

    when: tuple[Expr, ...]
    stored: tuple[str, ...]
    span: Span
    early: bool


class Deref(msgspec.Struct, frozen=True, array_like=True):
    """A loaded value used as an index or length: GL204 and GL205 judge these."""

    pointer: str
    #: pointer parameter whose element is the index, e.g. `num_accepted_ptr` in `load(table + load(num_accepted) - 1)`
    source: str
    index: Expr
    #: constant subtracted from the loaded value (0 when none)
    decrement: int
    #: a lower clamp or a test (`max(x, 0)`, `x > 0`, `x >= 0`, `x != PAD`) holds on this path
    guarded: bool
    span: Span


class KernelModel(msgspec.Struct, frozen=True, array_like=True):
    """Symbolic summary of one `@triton.jit` function."""

    qualname: str
    params: tuple[str, ...]
    constexprs: tuple[str, ...]
    defaults: tuple[tuple[str, Expr], ...]
    pointers: tuple[str, ...]
    segments: tuple[Segment, ...]
    exits: tuple[ExitPath, ...]
    derefs: tuple[Deref, ...]
    #: names of jit helpers it calls
    helpers: tuple[str, ...]
    #: decorators besides jit: "autotune", "heuristics"
    decorators: tuple[str, ...]
    #: what was not understood, for `graphlint facts`
    unknown: tuple[str, ...]
    span: Span
