"""The facts of one file. Everything that a rule may later ask is derived from these; they are what the cache keeps."""

from __future__ import annotations

from typing import Literal

import msgspec

from graphlint.facts.expr import Expr
from graphlint.facts.kernels import KernelSource, Span

EventKind = Literal["store", "bind", "call", "return", "assert", "delete"]


class Event(msgspec.Struct, frozen=True, array_like=True):
    """One thing a function does, in source order.

    ========  ==========================================================================
    kind      a, b
    ========  ==========================================================================
    store     a = the subscript that is assigned, b = the value (`op` for augmented)
    bind      a = the attribute that is assigned, b = the value
    call      a = the call, b = None
    return    a = the value, b = None
    assert    a = the condition, b = None
    delete    a = what is deleted, b = None
    ========  ==========================================================================

    `guards` are the conditions that hold there, outermost first; `withs` the context managers that are open.
    """

    kind: EventKind
    a: Expr
    b: Expr | None
    op: str
    guards: tuple[Expr, ...]
    withs: tuple[Expr, ...]
    span: Span


class Param(msgspec.Struct, frozen=True, array_like=True):
    """A parameter: its annotation and default as expressions."""

    name: str
    annotation: Expr | None
    default: Expr | None
    kind: Literal["pos", "kw", "args", "kwargs"]


class Binding(msgspec.Struct, frozen=True, array_like=True):
    """A local name and what it was bound to, for `facts PATH:LINE`, hover and rules on names."""

    name: str
    value: Expr
    guards: tuple[Expr, ...]
    span: Span


class Function(msgspec.Struct, frozen=True, array_like=True):
    """One function, method or lambda. `qualname` is unique in its file (`Class.method`, `outer.<locals>.inner` without `<locals>`)."""

    qualname: str
    name: str
    owner: str | None
    parent: str | None
    params: tuple[Param, ...]
    returns: Expr | None
    decorators: tuple[Expr, ...]
    events: tuple[Event, ...]
    bindings: tuple[Binding, ...]
    span: Span
    #: events were not extracted: nothing in its source concerns batches, buffers or graphs
    opaque: bool


class Class(msgspec.Struct, frozen=True, array_like=True):
    """One class: bases, class-level assignments and annotations."""

    qualname: str
    bases: tuple[Expr, ...]
    fields: tuple[tuple[str, Expr | None, Expr | None], ...]
    decorators: tuple[Expr, ...]
    span: Span


class FileFacts(msgspec.Struct, frozen=True, array_like=True):
    """Everything kept of one file. `imports`: local name -> (module, name or None); `kernel_text`: the source of its kernels, in place."""

    path: str
    module: str
    imports: tuple[tuple[str, str, str | None], ...]
    assigns: tuple[tuple[str, Expr], ...]
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    kernels: tuple[KernelSource, ...]
    kernel_text: str
