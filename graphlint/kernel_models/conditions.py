"""Path conditions and masks: conjunctions, negation, and the bound that one comparison puts on an index expression."""

from __future__ import annotations

from collections.abc import Callable

from graphlint.facts.expr import Expr
from graphlint.kernel_models.linear import Monomial, Poly, add, gap, scale

_OPPOSITE = {
    "<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "==", "is": "isnot", "isnot": "is", "in": "notin", "notin": "in",
}

TRUE: Expr = ("const", True)
_YES = (TRUE, ("const", 1))
_NO = (("const", False), ("const", 0))


def _boolean(expr: Expr) -> bool:
    return expr[0] in ("cmp", "and", "or") or (expr[0] == "if" and expr[2] in _YES and expr[3] in _NO)


def conjuncts(cond: Expr | None) -> list[Expr]:
    """The parts of a condition that must all hold; None and True have none."""
    if cond is None or cond in (TRUE, ("const", None)):
        return []
    op = cond[0]
    if op == "let":
        return conjuncts(cond[2])
    if op == "bin" and cond[1] == "&":
        return conjuncts(cond[2]) + conjuncts(cond[3])
    if op == "and":
        return [part for arm in cond[1:] for part in conjuncts(arm)]
    if op == "if" and cond[2] in _YES and cond[3] in _NO:
        return conjuncts(cond[1])
    if op == "cmp" and cond[1] in ("!=", "==") and cond[3] in (("const", 0), ("const", False)) and _boolean(cond[2]):
        return conjuncts(cond[2] if cond[1] == "!=" else negate(cond[2]))
    if op == "un" and cond[1] in ("not", "~"):
        inner = cond[2]
        flipped = negate(inner)
        return [cond] if flipped == cond else conjuncts(flipped)
    return [cond]


def negate(cond: Expr) -> Expr:
    """The condition that holds exactly when `cond` does not."""
    op = cond[0]
    if op == "let":
        return negate(cond[2])
    if op == "cmp" and cond[1] in _OPPOSITE:
        return ("cmp", _OPPOSITE[cond[1]], cond[2], cond[3])
    if op == "un" and cond[1] in ("not", "~"):
        positive: Expr = cond[2]
        return positive
    if op == "and":
        return ("or", *(negate(part) for part in cond[1:]))
    if op == "or":
        return ("and", *(negate(part) for part in cond[1:]))
    if op == "bin" and cond[1] == "&":
        return ("or", negate(cond[2]), negate(cond[3]))
    if op == "bin" and cond[1] == "|":
        return ("and", negate(cond[2]), negate(cond[3]))
    if op == "const" and isinstance(cond[1], bool):
        return ("const", not cond[1])
    return ("un", "not", cond)


def conjunction(parts: list[Expr]) -> Expr:
    """One condition out of several."""
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else ("and", *parts)


class Bound:
    """`target op limit` for op in < >= == !=; limits of <= and > are moved by one because lanes are integers."""

    __slots__ = ("limit", "op")

    def __init__(self, op: str, limit: Poly) -> None:
        self.op = op
        self.limit = limit


def bound(cond: Expr, target: Poly, is_index: Callable[[Monomial], bool]) -> Bound | None:
    """The bound that a comparison puts on `target` (a sum of index variables), or None when it says something else.

    `is_index(monomial)` tells the index variables from everything else.
    """
    if cond[0] != "cmp" or cond[1] not in ("<", "<=", ">", ">=", "==", "!="):
        return None
    apart = gap(cond)
    moving = {mono: coef for mono, coef in apart.items() if is_index(mono)}
    op = cond[1]
    if not moving:
        return None
    if moving == target:
        rest = scale(add(apart, moving, -1), -1)
    elif moving == scale(target, -1):
        rest = add(apart, moving, -1)
        op = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    else:
        return None
    if op == "<=":
        return Bound("<", add(rest, {(): 1}))
    if op == ">":
        return Bound(">=", add(rest, {(): 1}))
    return Bound(op, rest)
