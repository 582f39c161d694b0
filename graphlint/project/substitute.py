"""Replacing parameters by arguments in expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphlint.facts.expr import Expr

#: replaced when the mapping has them, otherwise left alone
_LEAVES = frozenset({"const", "global", "local", "func", "unknown", "pid", "nprog", "param"})


class Substitution:
    """Replaces leaf expressions by others; shared sub-expressions are rewritten once."""

    def __init__(self, mapping: Mapping[Expr, Expr]) -> None:
        self.mapping = mapping
        self._memo: dict[int, tuple[Expr, Expr]] = {}

    def __call__(self, expr: Expr) -> Expr:
        if expr[0] in _LEAVES:
            return self.mapping.get(expr, expr)
        known = self._memo.get(id(expr))
        if known is not None:
            return known[1]
        result = rebuild(expr, self)
        self._memo[id(expr)] = (expr, result)
        return result


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to its direct sub-expressions; the same object when nothing changed."""
    op = expr[0]
    if op == "call":
        func = change(expr[1])
        args = tuple(change(arg) for arg in expr[2])
        kwargs = tuple((name, change(value)) for name, value in expr[3])
        same = func is expr[1] and all(a is b for a, b in zip(args, expr[2])) and all(a[1] is b[1] for a, b in zip(kwargs, expr[3]))
        return expr if same else ("call", func, args, kwargs, expr[4])
    if op == "dict":
        pairs = tuple((change(key), change(value)) for key, value in expr[1:])
        return ("dict", *pairs)
    parts = tuple(change(part) if isinstance(part, tuple) else part for part in expr)
    return expr if all(a is b for a, b in zip(parts, expr)) else parts
