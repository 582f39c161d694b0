"""State of one path through a kernel, and the frame of an inlined call."""

from __future__ import annotations

import ast

from graphlint.facts.expr import Expr


class State:
    """What holds on one path: names, conditions (outermost first), loops entered, pointers stored to."""

    __slots__ = ("alive", "blurred", "conds", "env", "loops", "stored")

    def __init__(self, env: dict[str, Expr]) -> None:
        self.env = env
        self.conds: list[Expr] = []
        self.loops: list[Expr] = []
        self.stored: list[str] = []
        self.alive = True
        #: control flow on the way here was not understood: later intervals are not exact
        self.blurred = False

    def fork(self, conds: list[Expr]) -> State:
        """A copy in which `conds` hold too."""
        out = State(dict(self.env))
        known = set(self.conds)
        out.conds = [*self.conds, *(cond for cond in conds if cond not in known)]
        out.loops = self.loops
        out.stored = list(self.stored)
        out.blurred = self.blurred
        return out

    def join(self, a: State, b: State) -> None:
        """Both arms of a branch go on."""
        self.stored = list(dict.fromkeys([*a.stored, *b.stored]))

    def adopt(self, other: State) -> None:
        """Only `other` goes on."""
        self.env = other.env
        self.conds = other.conds
        self.stored = other.stored


class Frame:
    """One function being interpreted: `depth` is how many conditions its caller had."""

    __slots__ = ("depth", "node", "returns")

    def __init__(self, node: ast.FunctionDef, depth: int = 0) -> None:
        self.node = node
        self.depth = depth
        self.returns: list[tuple[list[Expr], Expr]] = []
