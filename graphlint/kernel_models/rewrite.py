"""Rewrites of values and conditions around one access: decided branches, pinned program ids."""

from __future__ import annotations

from graphlint.facts.expr import UNKNOWN, ZERO, Expr, children
from graphlint.kernel_models.conditions import conjuncts, negate
from graphlint.kernel_models.groups import Lanes, is_arange
from graphlint.kernel_models.linear import add, contains, gap, marks, minimum, poly, rebuild, scale, substitute, to_expr, walk


def resolve(expr: Expr, conds: list[Expr]) -> Expr:
    """`expr` with every `if` whose test the conditions decide replaced by the arm taken."""
    return _resolve(expr, set(conds))


def _resolve(expr: Expr, known: set[Expr]) -> Expr:
    if not any(part[0] == "if" for part in marks(expr)):
        return expr
    if expr[0] == "if":
        yes, no = conjuncts(expr[1]), conjuncts(negate(expr[1]))
        if all(part in known for part in yes):
            return _resolve(expr[2], known)
        if no and all(part in known for part in no):
            return _resolve(expr[3], known)
    return rebuild(expr, lambda part: _resolve(part, known))


def shallow(expr: Expr) -> list[Expr]:
    """Parts of an expression, not looking into loads."""
    out = [expr]
    for part in out:
        if part[0] != "load":
            out.extend(children(part))
    return out


def contains_block(address: Expr) -> bool:
    """Whether an address goes through a block pointer or a tensor descriptor."""
    return any(part[0] == "call" and part[1] == ("attr", ("global", "tl"), "block_ptr") for part in walk(address))


def pin_of(cond: Expr) -> tuple[Expr, Expr] | None:
    """(program id, value) when a condition fixes a program id to a value that is the same for all programs."""
    if cond[0] != "cmp" or cond[1] != "==":
        return None
    apart = gap(cond)
    pids = [mono for mono in apart if len(mono) == 1 and mono[0][0] == "pid" and apart[mono] in (1, -1)]
    if len(pids) != 1:
        return None
    pid = pids[0][0]
    rest = {mono: coef for mono, coef in apart.items() if mono != pids[0]}
    value = to_expr(scale(rest, -apart[pids[0]]))
    return None if contains(value, lambda part: part[0] in ("pid", "local") or is_arange(part)) else (pid, value)


def always_runs(pid: Expr, value: Expr) -> bool:
    """Whether a grid that is not empty has a program with this id (the first or the last)."""
    return value == ZERO or add(poly(value), {(("nprog", pid[1]),): 1}, -1) == {(): -1}


def substitute_all(expr: Expr, pins: dict[Expr, Expr]) -> Expr:
    """`expr` in the program that the pins fix."""
    for old, new in pins.items():
        expr = substitute(expr, old, new)
    return expr


def is_empty(lanes: Lanes) -> bool:
    """Whether an interval is provably empty."""
    if UNKNOWN in (lanes.lo, lanes.hi):
        return False
    low = minimum(add(poly(lanes.lo), poly(lanes.hi), -1))
    return low is not None and low >= 0
