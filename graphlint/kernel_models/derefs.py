"""Loaded values used as an index, and whether the path guards them."""

from __future__ import annotations

from collections.abc import Callable

from graphlint.facts.expr import Expr, children, strip
from graphlint.facts.kernels import Deref, Span
from graphlint.kernel_models.linear import Poly, depends, gap, marks, plain, poly, to_expr, walk


def find(
    pointer: str, offset: Poly, conds: list[Expr], loops: list[tuple[Expr, Expr, Expr]], span: Span, named: Callable[[Expr], Expr],
) -> list[Deref]:
    """Derefs of one access: each loaded value that its offset depends on."""
    out: dict[str, Deref] = {}
    index = to_expr(offset)
    for mono, coef in offset.items():
        for atom in mono:
            for load in _loads(atom):
                direct = load == atom and coef == 1 and len(mono) == 1
                minus = -offset.get((), 0) if direct else 0
                minus = max(minus, _inner_decrement(atom, load))
                clamped = load != atom and _clamped(atom, load)
                guarded = clamped or holds_lower_bound(load, conds, loops)
                seen = out.get(load[1])
                if seen is None or minus > seen.decrement:
                    out[load[1]] = Deref(pointer, load[1], named(index), max(minus, 0), guarded, span)
    return list(out.values())


def _loads(expr: Expr) -> list[Expr]:
    """Loads in an expression, not the loads that their own indices use."""
    out: list[Expr] = []
    todo = [expr]
    for part in todo:
        if part[0] == "load":
            out.append(part)
        else:
            todo.extend(children(part))
    return out


def _inner_decrement(atom: Expr, load: Expr) -> int:
    """Constant subtracted from the load inside an opaque atom such as `(x - 1) // 16`."""
    if atom == load:
        return 0
    for part in walk(atom):
        if part[0] == "bin" and depends(part, load) and part[1] in ("+", "-"):
            sum_ = poly(part)
            if sum_.get((load,)) == 1:
                return max(-sum_.get((), 0), 0)
    return 0


def _clamped(atom: Expr, load: Expr) -> bool:
    """Whether the load reaches the index through `max` or a `where` that tests it."""
    for part in walk(atom):
        if part[0] == "call" and part[1] == ("global", "max") and depends(part, load):
            return True
        if part[0] == "call" and part[1][0] == "attr" and part[1][2] in ("clamp", "maximum") and depends(part, load):
            return True
        if part[0] == "if" and depends(part[1], load):
            return True
    return False


def holds_lower_bound(load: Expr, conds: list[Expr], loops: list[tuple[Expr, Expr, Expr]]) -> bool:
    """Whether a condition on the path, a mask or a loop keeps the loaded value from being negative, zero or a sentinel."""
    for cond in conds:
        if not depends(cond, load):
            continue
        for part in walk(cond):
            if part[0] == "cmp" and _bounds_below(part, load):
                return True
        if cond == load or (cond[0] in ("and", "or") and load in cond[1:]):
            return True
    return any(_positive(poly(hi), load) for _, hi, _ in loops)


def _bounds_below(cond: Expr, load: Expr) -> bool:
    apart = gap(cond)
    if cond[1] in ("==", "!="):
        return any(load in _loads(atom) for mono in apart for atom in mono)
    up = cond[1] in (">", ">=")
    for mono, coef in apart.items():
        if any(load in _loads(atom) for atom in mono):
            if (coef > 0) == up:
                return True
            siblings = [m for m in apart if len(m) == 1 and m[0][0] == "load" and m[0][1] == load[1] and m[0] != load]
            if siblings:
                return True
    return False


def _positive(sum_: Poly, load: Expr) -> bool:
    return any(coef > 0 and any(load in _loads(atom) for atom in mono) for mono, coef in sum_.items())


def subtractions(value: Expr) -> tuple[tuple[str, Expr], ...]:
    """Loaded values that something is subtracted from on the way to a stored value, with no lower clamp: (pointer, what is subtracted).

    A length computed this way is negative for a padded request whose length is 0. The difference of two elements of one pointer (the
    length of a run) is none.
    """
    value = strip(value)
    if (value[0] == "call" and value[1] == ("global", "max")) or (value[0] == "if" and any(part[0] == "load" for part in marks(value[1]))):
        return ()
    if value[0] == "call":
        return tuple(found for part in value[2] for found in subtractions(part)) if value[1] == ("global", "min") else ()
    if value[0] == "if":
        return subtractions(value[2]) + subtractions(value[3])
    sum_ = poly(plain(value))
    loads = [mono[0] for mono, coef in sum_.items() if coef == 1 and len(mono) == 1 and mono[0][0] == "load"]
    less = {mono: -coef for mono, coef in sum_.items() if coef < 0}
    sources = {mono[0][1] for mono in less if len(mono) == 1 and mono[0][0] == "load"}
    return tuple((load[1], to_expr(less)) for load in loads if less and load[1] not in sources)
