"""What the fixes of kernels need to know of a kernel's text: its stores, its program ids, and where it pads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphlint.fix.island import Island, names_in, walk


class Store(NamedTuple):
    """`tl.store(base + lane, value, mask=mask)` as a statement of its own."""

    stmt: ast.Expr
    base: str
    lane: str
    value: ast.expr
    mask: ast.expr | None


class PadBlock(NamedTuple):
    """A branch that only a program without a live lane takes, or the last live one. `first` is the first lane of the padding.

    kind: "last" (the last live program, which goes on), "extra" (a program of its own), "beyond" (one program a padded lane).
    """

    test: ast.If
    kind: str
    first: str


class KernelCode:
    """The facts of one jit function."""

    def __init__(self, island: Island) -> None:
        self.island = island
        self.params = [arg.arg for arg in (*island.node.args.posonlyargs, *island.node.args.args, *island.node.args.kwonlyargs)]
        self.bound: dict[str, ast.expr] = {}
        self.bound_at: dict[str, int] = {}
        for stmt in island.statements():
            if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
                self.bound.setdefault(stmt.targets[0].id, stmt.value)
                self.bound_at.setdefault(stmt.targets[0].id, stmt.lineno)
            elif isinstance(stmt, ast.For) and isinstance(stmt.target, ast.Name):
                self.bound_at.setdefault(stmt.target.id, stmt.lineno)
        self.pids = {name: _axis(value) for name, value in self.bound.items() if _called(value) == "program_id"}

    def stores(self, body: Sequence[ast.stmt] | None = None) -> Iterator[Store]:
        """Every store of a block, or of the kernel."""
        for stmt in walk(self.island.node.body if body is None else body):
            found = _store(stmt)
            if found is not None:
                yield found

    def store_at(self, line: int) -> Store | None:
        """The store that stands on this line of the file."""
        return next((one for one in self.stores() if self.island.covers(one.stmt, line)), None)

    def known_before(self, names: set[str], line: int) -> bool:
        """Whether every name has a value where a statement of this line (of the island) begins."""
        known = {*self.params, "tl", "range"}
        return all(name in known or name.isupper() or self.bound_at.get(name, line) < line for name in names)

    def pad_blocks(self) -> list[PadBlock]:
        """Branches that pad, or are there for padding."""
        found = []
        for stmt in self.island.statements():
            if isinstance(stmt, ast.If) and isinstance(stmt.test, ast.Compare) and len(stmt.test.ops) == 1:
                left, right, test = stmt.test.left, stmt.test.comparators[0], stmt.test.ops[0]
                if not isinstance(left, ast.Name) or left.id not in self.pids:
                    continue
                returns = bool(stmt.body) and isinstance(stmt.body[-1], ast.Return)
                if isinstance(test, ast.Eq) and self.is_last(right):
                    found.append(PadBlock(stmt, "extra" if returns else "last", left.id if returns else self.count_of(right, left.id)))
                elif isinstance(test, ast.GtE) and returns and isinstance(right, ast.Name):
                    found.append(PadBlock(stmt, "beyond", left.id))
        return found

    def is_last(self, node: ast.expr) -> bool:
        """Number of programs less one, whatever it is called."""
        node = self.resolve(node)
        return (
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and ast.unparse(node.right) == "1"
            and _called(self.resolve(node.left)) == "num_programs"
        )

    def count_of(self, last: ast.expr, pid: str) -> str:
        """Text of the number of programs, from an expression for the last one."""
        return ast.unparse(last.left) if isinstance(last, ast.BinOp) else f"{pid} + 1"

    def resolve(self, node: ast.expr) -> ast.expr:
        """What a name was bound to."""
        for _ in range(4):
            if not isinstance(node, ast.Name) or node.id not in self.bound:
                break
            node = self.bound[node.id]
        return node

    def at_lane(self, value: ast.expr, first: str) -> str | None:
        """Text of a per-lane value for the lane `first`: the value with the program id replaced by it. None when it needs more."""
        value = self.resolve(value)
        known = {*self.params, *self.pids, "tl"}
        if any(name not in known and not name.isupper() for name in names_in(value)):
            return None
        names = self.pids

        class Replace(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                return ast.parse(first, mode="eval").body if node.id in names else node

        return ast.unparse(Replace().visit(ast.parse(ast.unparse(value), mode="eval").body))


def _store(stmt: ast.stmt) -> Store | None:
    if not isinstance(stmt, ast.Expr):
        return None
    call = stmt.value
    if not isinstance(call, ast.Call) or _called(call) != "store" or len(call.args) < 2:
        return None
    terms = _terms(call.args[0])
    mask = next((one.value for one in call.keywords if one.arg == "mask"), call.args[2] if len(call.args) > 2 else None)
    return Store(stmt, ast.unparse(terms[0]), " + ".join(ast.unparse(term) for term in terms[1:]), call.args[1], mask)


def _terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _called(node: ast.expr) -> str:
    """`program_id` of `tl.program_id(0)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        node = node.func.value
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _axis(node: ast.expr) -> str:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        node = node.func.value
    return ast.unparse(node.args[0]) if isinstance(node, ast.Call) and node.args else "0"
