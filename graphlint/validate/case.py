"""A runnable case as plain data: what the child process is given."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from graphlint.validate.roles import Role


class Pointer(msgspec.Struct, frozen=True, kw_only=True):
    """One buffer a kernel is handed. The inner buffers of a pointer table are named `table[]`."""

    name: str
    role: Role
    dtype: str
    stored: bool
    loaded: bool


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One batch: live requests, the padded request count, query tokens of each request (live ones first, then padding)."""

    live: int
    padded: int
    lengths: list[int]

    def symbols(self, capacity: int, token_capacity: int) -> dict[str, int]:
        """Values of the extents that grids and scalars are written in."""
        return {
            "live_reqs": self.live,
            "padded_reqs": self.padded,
            "cap_reqs": capacity,
            "live_tokens": sum(self.lengths[: self.live]),
            "padded_tokens": sum(self.lengths),
            "cap_tokens": token_capacity,
            "q": max(self.lengths),
            "page": 16,
        }

    def full(self) -> Step:
        """The batch that a padded reader was captured for: every padded request is live."""
        return Step(live=self.padded, padded=self.padded, lengths=self.lengths)


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """An older batch, and the batch that runs now, in the graph of a padded size."""

    before: Step
    now: Step
    seed: int

    def text(self) -> str:
        """In words."""
        uniform = set(self.now.lengths)
        tokens = (
            f"{self.now.lengths[0]} token{'s' if self.now.lengths[0] > 1 else ''} each"
            if len(uniform) == 1
            else "tokens " + "+".join(map(str, self.now.lengths[: self.now.live]))
        )
        return f"{self.before.live} requests, then {self.now.live} padded to {self.now.padded} ({tokens}), seed {self.seed}"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel, its arguments and the buffers to watch.

    `grid` and `scalars` are expressions over the extents of a step (see Step.symbols), `row` (elements a lane) and other scalars.
    """

    kernel: str
    params: list[str]
    pointers: list[Pointer]
    scalars: dict[str, str]
    constexprs: dict[str, str]
    grid: list[str]
    #: parameters whose lanes are judged
    watch: list[str]
    #: elements of one lane where the kernel is handed a stride; 1 for a buffer of one number a lane
    rows: dict[str, int]
    capacity: int = 16
    token_capacity: int = 128
    row: int = 64
    #: what a padded lane of an index buffer holds
    pad_index: int = 0


_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_CALLS: dict[str, Callable[..., Any]] = {
    "cdiv": lambda a, b: -(-a // b),
    "next_power_of_2": lambda a: 1 << max(0, (a - 1).bit_length()),
    "min": min,
    "max": max,
    "int": int,
    "float": float,
    "bool": bool,
    "abs": abs,
    "constexpr": lambda value: value,
}
_LARGEST = 1 << 40


def evaluate(text: str, symbols: Mapping[str, Any]) -> Any:
    """The value of an arithmetic expression over `symbols`. Raises ValueError for anything else; executes no code."""
    try:
        return _evaluate(ast.parse(text, mode="eval").body, symbols)
    except (SyntaxError, ZeroDivisionError, TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"cannot evaluate {text!r}: {error}") from error


def _evaluate(node: ast.expr, symbols: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return symbols[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left, symbols), _evaluate(node.right, symbols)
        if isinstance(node.op, (ast.Pow, ast.LShift)) and right > 64:
            raise ValueError("too large")
        value = _OPERATORS[type(node.op)](left, right)
        if isinstance(value, int) and abs(value) > _LARGEST:
            raise ValueError("too large")
        return value
    if isinstance(node, ast.UnaryOp):
        value = _evaluate(node.operand, symbols)
        return -value if isinstance(node.op, ast.USub) else (not value) if isinstance(node.op, ast.Not) else value
    if isinstance(node, ast.Call) and not node.keywords:
        name = ast.unparse(node.func).rsplit(".", 1)[-1]
        return _CALLS[name](*[_evaluate(argument, symbols) for argument in node.args])
    raise ValueError(f"cannot evaluate {ast.unparse(node)!r}")
