"""Facts as bytes: structs become tuples, and `marshal` (which keeps shared expressions shared, as in a `.pyc`) does the rest.

`marshal` data can crash an interpreter if somebody tampers with it. The cache lies where only its user writes, like bytecode does; facts
are never read from a checkout.
"""

from __future__ import annotations

import marshal
from typing import Any

from graphlint.facts.kernels import Deref, ExitPath, KernelModel, KernelSource, Segment, Span
from graphlint.facts.model import Binding, Class, Event, FileFacts, Function, Param


def encode(facts: FileFacts) -> bytes:
    """`facts` as bytes."""
    return marshal.dumps(
        (
            facts.path,
            facts.module,
            facts.imports,
            facts.assigns,
            tuple(_function(f) for f in facts.functions),
            tuple((c.qualname, c.bases, c.fields, c.decorators, _span(c.span)) for c in facts.classes),
            tuple((k.qualname, k.params, k.pointers, k.stores, _span(k.span)) for k in facts.kernels),
            facts.kernel_text,
        )
    )


def _span(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, span.end_line, span.end_column


def _function(f: Function) -> tuple[Any, ...]:
    return (
        f.qualname,
        f.name,
        f.owner,
        f.parent,
        tuple((p.name, p.annotation, p.default, p.kind) for p in f.params),
        f.returns,
        f.decorators,
        tuple((e.kind, e.a, e.b, e.op, e.guards, e.withs, _span(e.span)) for e in f.events),
        tuple((b.name, b.value, b.guards, _span(b.span)) for b in f.bindings),
        _span(f.span),
        f.opaque,
    )


def encode_model(k: KernelModel) -> bytes:
    """A kernel model as bytes."""
    segments = tuple((s.pointer, s.kind, s.lo, s.hi, s.role, s.axis, s.value, s.when, s.exact, s.inner, _span(s.span)) for s in k.segments)
    exits = tuple((e.when, e.stored, _span(e.span), e.early) for e in k.exits)
    derefs = tuple((d.pointer, d.source, d.index, d.decrement, d.guarded, _span(d.span)) for d in k.derefs)
    return marshal.dumps(
        (
            k.qualname,
            k.params,
            k.constexprs,
            k.defaults,
            k.pointers,
            segments,
            exits,
            derefs,
            k.helpers,
            k.decorators,
            k.unknown,
            _span(k.span),
        )
    )


def decode(data: bytes) -> FileFacts:
    """Facts of bytes that `encode` made. Raises `ValueError`, `TypeError` or `EOFError` on anything else."""
    path, module, imports, assigns, functions, classes, kernels, kernel_text = marshal.loads(data)
    return FileFacts(
        path,
        module,
        imports,
        assigns,
        tuple(
            Function(
                q,
                n,
                o,
                p,
                tuple([Param(*param) for param in params]),
                r,
                d,
                tuple([Event(kind, a, b, op, guards, withs, Span(*span)) for kind, a, b, op, guards, withs, span in events]),
                tuple([Binding(name, value, guards, Span(*span)) for name, value, guards, span in bindings]),
                Span(*s),
                opaque,
            )
            for q, n, o, p, params, r, d, events, bindings, s, opaque in functions
        ),
        tuple(Class(q, b, f, d, Span(*s)) for q, b, f, d, s in classes),
        tuple(KernelSource(q, p, pointers, stores, Span(*s)) for q, p, pointers, stores, s in kernels),
        kernel_text,
    )


def decode_model(data: bytes) -> KernelModel:
    """The kernel model of bytes that `encode_model` made. Raises like `decode`."""
    q, p, c, d, ptrs, segments, exits, derefs, h, dec, u, s = marshal.loads(data)
    return KernelModel(
        q,
        p,
        c,
        d,
        ptrs,
        tuple(Segment(*(*seg[:-1], Span(*seg[-1]))) for seg in segments),
        tuple(ExitPath(when, stored, Span(*span), early) for when, stored, span, early in exits),
        tuple(Deref(*(*deref[:-1], Span(*deref[-1]))) for deref in derefs),
        h,
        dec,
        u,
        Span(*s),
    )
