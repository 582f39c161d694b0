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
        """`expr` with its leaves replaced."""
        op = expr[0]
        if op in _LEAVES:
            return self.mapping.get(expr, expr)
        known = self._memo.get(id(expr))
        if known is not None:
            return known[1]
        # attributes and names are most of all expressions: spelled out, the generic way is several times slower
        result: Expr
        if op == "attr":
            base = self(expr[1])
            result = expr if base is expr[1] else ("attr", base, expr[2])
        elif op == "let":
            value = self(expr[2])
            result = expr if value is expr[2] else ("let", expr[1], value)
        else:
            result = rebuild(expr, self)
        self._memo[id(expr)] = (expr, result)
        return result


def rebuild(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """`expr` with `change` applied to its direct sub-expressions; the same object when nothing changed."""
    op = expr[0]
    if op == "call":
        func = change(expr[1])
        same = func is expr[1]
        args: list[Expr] = []
        for arg in expr[2]:
            new = change(arg)
            same = same and new is arg
            args.append(new)
        kwargs: list[tuple[str, Expr]] = []
        for pair in expr[3]:
            new = change(pair[1])
            same = same and new is pair[1]
            kwargs.append((pair[0], new))
        return expr if same else ("call", func, tuple(args), tuple(kwargs), expr[4])
    if op == "dict":
        pairs = tuple((change(key), change(value)) for key, value in expr[1:])
        return ("dict", *pairs)
    changed = False
    parts: list[object] = []
    for part in expr:
        if part.__class__ is tuple:
            new = change(part)
            changed = changed or new is not part
            parts.append(new)
        else:
            parts.append(part)
    return tuple(parts) if changed else expr


class Bare:
    """`bare(expr)`: the expression without any of the names values were bound to, so that two ways to write one value are equal."""

    def __init__(self) -> None:
        self._memo: dict[int, tuple[Expr, Expr]] = {}

    def clear(self) -> None:
        """Forget what was rewritten, and let go of it."""
        self._memo.clear()

    def __call__(self, expr: Expr) -> Expr:
        """`expr` without `let`; shared sub-expressions are rewritten once."""
        while expr[0] == "let":
            expr = expr[2]
        if expr[0] in _LEAVES:
            return expr
        known = self._memo.get(id(expr))
        if known is None:
            known = self._memo[id(expr)] = (expr, rebuild(expr, self))
        return known[1]
