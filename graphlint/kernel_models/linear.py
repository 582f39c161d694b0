"""Linear and polynomial normal form of index expressions.

Two index expressions are the same lane when their difference normalises to zero. A polynomial is a mapping from a monomial (a sorted tuple of
atoms) to an integer coefficient; an atom is any expression that `+ - *` does not take apart.
"""

from __future__ import annotations

from collections.abc import Callable

from graphlint.facts.expr import NONE, ONE, UNKNOWN, ZERO, Expr, strip

Monomial = tuple[Expr, ...]
Poly = dict[Monomial, int]

#: Sums and products beyond this many terms stay opaque: nothing in an address needs more, and the cost stays bounded.
MAX_TERMS = 40


def poly(expr: Expr) -> Poly:
    """Normal form of an integer expression; bound names (`let`) are looked through."""
    expr = strip(expr)
    op = expr[0]
    if op == "const":
        value = expr[1]
        if isinstance(value, bool) or not isinstance(value, int):
            return {(expr,): 1}
        return {(): value} if value else {}
    if op == "bin" and expr[1] in ("+", "-"):
        return add(poly(expr[2]), poly(expr[3]), 1 if expr[1] == "+" else -1)
    if op == "bin" and expr[1] == "*":
        return multiply(poly(expr[2]), poly(expr[3]), expr)
    if op == "un" and expr[1] == "-":
        return scale(poly(expr[2]), -1)
    if op == "un" and expr[1] == "+":
        return poly(expr[2])
    return {(expr,): 1}


def add(a: Poly, b: Poly, factor: int = 1) -> Poly:
    """a + factor * b."""
    out = dict(a)
    for mono, coef in b.items():
        total = out.get(mono, 0) + factor * coef
        if total:
            out[mono] = total
        else:
            out.pop(mono, None)
    return out


def scale(a: Poly, factor: int) -> Poly:
    """factor * a."""
    return {mono: coef * factor for mono, coef in a.items()} if factor else {}


def multiply(a: Poly, b: Poly, whole: Expr) -> Poly:
    """a * b, or `whole` as one atom when the product has too many terms."""
    if len(a) * len(b) > MAX_TERMS:
        return {(whole,): 1}
    out: Poly = {}
    for ma, ca in a.items():
        for mb, cb in b.items():
            mono = times(ma, mb)
            total = out.get(mono, 0) + ca * cb
            if total:
                out[mono] = total
            else:
                out.pop(mono, None)
    return out


def times(a: Monomial, b: Monomial) -> Monomial:
    """Product of two monomials in canonical order."""
    if not a:
        return b
    if not b:
        return a
    return tuple(sorted(a + b, key=repr))


def constant(p: Poly) -> int | None:
    """The value of a constant polynomial, or None."""
    if not p:
        return 0
    return p[()] if len(p) == 1 and () in p else None


def to_expr(p: Poly) -> Expr:
    """An expression in canonical order: equal polynomials give equal expressions."""
    if not p:
        return ZERO
    terms = sorted(((mono, coef) for mono, coef in p.items() if mono), key=lambda item: (item[1] < 0, repr(item[0])))
    out: Expr | None = None
    for mono, coef in terms:
        body = mono[0]
        for atom in mono[1:]:
            body = ("bin", "*", body, atom)
        if abs(coef) != 1:
            body = ("bin", "*", body, ("const", abs(coef)))
        if out is None:
            out = ("un", "-", body) if coef < 0 else body
        else:
            out = ("bin", "-" if coef < 0 else "+", out, body)
    rest = p.get((), 0)
    if out is None:
        return ("const", rest)
    if rest:
        out = ("bin", "-" if rest < 0 else "+", out, ("const", abs(rest)))
    return out


def canonical(expr: Expr) -> Expr:
    """`expr` with its sums in canonical order."""
    return to_expr(poly(expr))


def difference(a: Expr, b: Expr) -> int | None:
    """a - b when that is a known constant, else None."""
    return constant(add(poly(a), poly(b), -1))


def same(a: Expr, b: Expr) -> bool:
    """Whether two index expressions are provably equal."""
    if UNKNOWN in (a, b):
        return False
    return difference(plain(a), plain(b)) == 0


def plain(expr: Expr) -> Expr:
    """`expr` without bound names at any depth."""
    if expr[0] == "let":
        return plain(expr[2])
    return rebuild(expr, plain)


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to each direct sub-expression, the same object when nothing changes."""
    op = expr[0]
    if op in ("const", "param", "global", "local", "func", "unknown", "pid", "nprog"):
        return expr
    if op == "call":
        args = tuple(change(arg) for arg in expr[2])
        kwargs = tuple((key, change(value)) for key, value in expr[3])
        func = change(expr[1])
        if func is expr[1] and all(x is y for x, y in zip(args, expr[2])) and all(x[1] is y[1] for x, y in zip(kwargs, expr[3])):
            return expr
        return ("call", func, args, kwargs, expr[4])
    if op == "dict":
        return ("dict", *((change(key), change(value)) for key, value in expr[1:]))
    parts = [change(part) if isinstance(part, tuple) else part for part in expr[1:]]
    if all(x is y for x, y in zip(parts, expr[1:])):
        return expr
    return (op, *parts)


def substitute(expr: Expr, old: Expr, new: Expr) -> Expr:
    """`expr` with every `old` replaced by `new`; the indices of loads inside stay canonical."""
    if expr == old:
        return new
    out = rebuild(expr, lambda part: substitute(part, old, new))
    if out is expr:
        return expr
    if out[0] == "load":
        return ("load", out[1], canonical(out[2]), out[3], out[4])
    return fold(out)


def fold(expr: Expr) -> Expr:
    """Decides a comparison of constants (and of sums that cannot be negative) and the `if` over it."""
    if expr[0] == "cmp" and expr[1] in ("<", "<=", ">", ">=", "==", "!="):
        gap = add(poly(expr[2]), poly(expr[3]), -1)
        value = constant(gap)
        if value is not None:
            return ("const", _compare(expr[1], value))
        low = minimum(gap)
        if low is not None:
            if expr[1] in (">", "!=") and low > 0 or expr[1] == ">=" and low >= 0:
                return ("const", True)
            if expr[1] in ("<=", "==") and low > 0 or expr[1] == "<" and low >= 0:
                return ("const", False)
    if expr[0] == "if" and expr[1] in (("const", True), ("const", False)):
        return expr[2] if expr[1][1] else expr[3]
    return expr


def minimum(p: Poly) -> int | None:
    """A lower bound of a sum of program ids and program counts, else None."""
    low = 0
    for mono, coef in p.items():
        if not mono:
            low += coef
        elif coef > 0 and len(mono) == 1 and mono[0][0] in ("pid", "nprog"):
            low += coef if mono[0][0] == "nprog" else 0
        else:
            return None
    return low


def _compare(op: str, gap: int) -> bool:
    return {"<": gap < 0, "<=": gap <= 0, ">": gap > 0, ">=": gap >= 0, "==": gap == 0, "!=": gap != 0}[op]


def contains(expr: Expr, wanted: Callable[[Expr], bool]) -> bool:
    """Whether `wanted` holds for the expression or any part of it."""
    return any(wanted(part) for part in walk(expr))


def walk(expr: Expr) -> list[Expr]:
    """The expression and all its parts, outermost first."""
    out = [expr]
    for part in out:
        op = part[0]
        if op == "call":
            out.append(part[1])
            out.extend(part[2])
            out.extend(value for _, value in part[3])
        elif op == "dict":
            out.extend(x for pair in part[1:] for x in pair)
        elif op not in ("const", "param", "global", "local", "func", "unknown", "pid", "nprog"):
            out.extend(x for x in part[1:] if isinstance(x, tuple))
    return out


def depends(expr: Expr, part: Expr) -> bool:
    """Whether `part` occurs in `expr`."""
    return contains(expr, lambda x: x == part)


__all__ = [
    "MAX_TERMS", "NONE", "ONE", "ZERO", "Monomial", "Poly", "add", "canonical", "constant", "contains", "depends", "difference", "fold",
    "minimum", "multiply", "plain", "poly", "rebuild", "same", "scale", "substitute", "times", "to_expr", "walk",
]
