"""Builds the KernelModel of one kernel."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphlint.facts.expr import UNKNOWN, Expr
from graphlint.facts.jit import parameters
from graphlint.facts.kernels import KernelModel, Segment
from graphlint.kernel_models import scan
from graphlint.kernel_models.accesses import POINTER_NAME, Draft
from graphlint.kernel_models.interp import Interpreter
from graphlint.kernel_models.linear import Poly, canonical, forget, multiply, plain, poly, same, to_expr, walk
from graphlint.kernel_models.state import State


def build(
    node: ast.FunctionDef, qualname: str, source_lines: list[str], helpers: Mapping[str, ast.FunctionDef] | None = None,
) -> KernelModel:
    """Symbolic summary of one `@triton.jit` function.

    `helpers` are the other jit functions of the module (and of the class) by name; calls of them are inlined. Never raises: what is not
    understood is listed in `unknown`, and when the interpretation breaks off, every segment found so far is inexact.
    """
    forget()
    interp = Interpreter(node, qualname, source_lines, helpers or {})
    recorder = interp.recorder
    complete = True
    try:
        interp.run()
    except Exception as error:  # noqa: BLE001 - a kernel that breaks the model must not end the run; the reason is part of the result
        recorder.note(f"model incomplete: {type(error).__name__}: {error}"[:200])
        complete = False
    escaped = _escaped(interp)
    segments = [
        segment if complete and segment.pointer not in escaped else _blur(segment) for segment in _harmonise(recorder.drafts)
    ]
    return KernelModel(
        qualname=qualname,
        params=tuple(arg.arg for arg in parameters(node)),
        constexprs=scan.constexprs(node),
        defaults=tuple(_defaults(interp, node)),
        pointers=tuple(recorder.pointers),
        segments=tuple(segments),
        exits=tuple(interp.exits),
        derefs=tuple(dict.fromkeys(recorder.derefs)),
        helpers=tuple(interp.called),
        decorators=scan.wrappers(node),
        unknown=tuple(recorder.unknown),
        span=scan.span(node, source_lines),
    )


def _defaults(interp: Interpreter, node: ast.FunctionDef) -> list[tuple[str, Expr]]:
    return [(name, _default(interp, value)) for name, value in scan.default_nodes(node)]


def _default(interp: Interpreter, node: ast.expr) -> Expr:
    try:
        return interp.eval(node, State({}))
    except Exception:  # noqa: BLE001 - same promise as in `build`
        return UNKNOWN


def _escaped(interp: Interpreter) -> set[str]:
    """Pointer parameters handed to functions that were not inlined."""
    recorder = interp.recorder
    out: set[str] = set()
    for value, helper in recorder.escaped:
        for part in walk(value):
            if part[0] == "param" and part[2] not in recorder.constexprs:
                if part[2] in recorder.loaders:
                    continue
                if part[2] in recorder.pointers or POINTER_NAME.search(part[2]):
                    recorder.note(f"{part[2]} passed to {helper}")
                    recorder.pointers.setdefault(part[2])
                    out.add(part[2])
            elif part[0] == "load":
                break
    return out


def _blur(segment: Segment) -> Segment:
    return Segment(
        segment.pointer, segment.kind, segment.lo, segment.hi, segment.role, segment.axis, segment.value, segment.when, False,
        segment.inner, segment.span,
    )


def _harmonise(drafts: list[Draft]) -> list[Segment]:
    """Rows of known width become flat lanes when the kernel also addresses the same pointer flat.

    `ptr + pid * K + j` for j in [0, K) are rows of K, or lanes [0, num_programs * K): the kernel's other accesses tell which. Exact only
    when the rows are full.
    """
    flat = {
        (draft.segment.pointer, draft.table)
        for draft in drafts
        if draft.width is None and draft.segment.inner is None and draft.segment.role != "indirect" and draft.segment.hi != UNKNOWN
        and not same(draft.segment.hi, ("bin", "+", draft.segment.lo, ("const", 1)))
    }
    return [
        _flatten(draft.segment, draft.width) if draft.width and (draft.segment.pointer, draft.table) in flat else draft.segment
        for draft in drafts
    ]


def _flatten(segment: Segment, width: Poly) -> Segment:
    if segment.inner is None or segment.role == "indirect" or UNKNOWN in (segment.lo, segment.hi):
        return segment
    inner_lo, inner_hi = (poly(plain(end)) for end in segment.inner)
    lo, hi = (canonical(to_expr(multiply(poly(plain(end)), width, end))) for end in (segment.lo, segment.hi))
    return Segment(
        segment.pointer, segment.kind, lo, hi, segment.role, segment.axis, segment.value, segment.when,
        segment.exact and not inner_lo and inner_hi == width, None, segment.span,
    )
