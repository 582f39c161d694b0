"""Where a release can be mutated.

The id of a mutant is `path::symbol::kind:buffer#n`, with n counting equal ones from 1 in source order; it does not depend on lines.

Removed padding:
  kernel  a `tl.store` of a Triton kernel in a loop up to a maximum, or under `index >= live count`
  host    `X[live:...].fill_(v)`, `.zero_()`, `.fill(v)`
  assign  `X[live:...] = v`
  copy    `X[live:...].copy_(v)`
  whole   `X.zero_()` or `X.fill_(v)` of a buffer whose prefix the same function writes
Removed guards:
  gate    if/else that narrows a CUDA-graph mode before a decode graph manager is made
  narrow  the same as an expression, or by another test than `decode_mode()`
  mode    `padded if mode == FULL else live`, or the same as a statement, keeps the padded arm only
  guard   `if index < 0: return` and its like at the head of a kernel
  clamp   `tl.maximum(x, 0)`, `x.clamp(min=0)` become `x`
Exchanged extents:
  bound   a tail fill that starts at the padded count instead of the live one
  unit    a buffer of the object read to a token count instead of a request count
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

Kind = Literal["kernel", "host", "assign", "copy", "whole", "gate", "narrow", "mode", "guard", "clamp", "bound", "unit"]
KINDS: tuple[Kind, ...] = ("kernel", "host", "assign", "copy", "whole", "gate", "narrow", "mode", "guard", "clamp", "bound", "unit")
#: kinds on which the verdict lists are complete
LISTED: tuple[Kind, ...] = ("kernel", "host", "gate")

SKIPPED_FOLDERS = frozenset({"tests", "test", "benchmarks", "examples", "docs", "third_party", "__pycache__"})
LIVE_COUNT = re.compile(
    r"num_reqs|num_tokens|num_decodes|num_spec_decodes|num_seqs|raw_bs|raw_num_token|batch_size|num_actual|num_scheduled|actual_num"
    r"|num_input|\bbs\b|\bn\b"
)
PAD_LOOP_END = re.compile(r"max_num|MAX_NUM|pad_end|padded")
PAD_LOOP_START = re.compile(r"num_reqs|req_idx|pad_start|num_tokens")
PAD_BRANCH = re.compile(r">= *(num_reqs|num_tokens|bs|num_seqs)\b")
NULL_GUARD = re.compile(r"< 0$|<= 0$|== -1$|== 0$|== PAD\w*$|== NULL\w*$|== pad_slot_id$|== null_block_id$")
#: what is used as an index or a length, as against data
INDEX_NAME = re.compile(r"slot|idx|index|indices|table|_ids?\b|seq_?len|_lens?\b|accepted|num_|pos\b|positions|start|page|block")
#: live name -> the padded name that engines put beside it
PADDED_NAME = {
    "num_reqs": ("num_reqs_padded", "padded_num_reqs", "num_reqs_after_padding"),
    "num_tokens": ("num_tokens_padded", "num_tokens_after_padding", "padded_num_tokens", "num_input_tokens"),
    "num_actual_tokens": ("num_input_tokens", "num_tokens_padded"),
    "num_scheduled_tokens": ("num_input_tokens", "num_tokens_padded"),
    "total_num_scheduled_tokens": ("num_input_tokens", "num_tokens_padded"),
    "num_decodes": ("num_reqs_padded", "batch_size"),
    "raw_bs": ("padded_bs", "bs"),
    "raw_num_token": ("num_tokens", "padded_num_tokens"),
    "raw_num_tokens": ("padded_num_tokens", "num_tokens"),
}
#: request name -> the token name that engines put beside it
TOKEN_NAME = {
    "num_reqs": ("num_tokens", "num_actual_tokens", "num_scheduled_tokens", "total_num_scheduled_tokens"),
    "num_reqs_padded": ("num_tokens_padded", "num_tokens"),
    "num_decodes": ("num_decode_tokens",),
    "raw_bs": ("raw_num_token", "raw_num_tokens"),
    "bs": ("num_tokens",),
}
FILLS = ("fill_", "zero_", "fill")
MARKS = (b"tl.store", b".fill", b".zero_", b".copy_", b"CUDAGraphMode", b"clamp", b"maximum", b"num_reqs", b"raw_bs", b"num_tokens")


class Mutant(msgspec.Struct, frozen=True):
    """One way to spoil one file: `replacement` takes the place of the bytes [start, end)."""

    id: str
    kind: Kind
    path: str
    symbol: str
    buffer: str
    line: int
    end_line: int
    text: str
    start: int
    end: int
    replacement: str

    def spoil(self, source: bytes) -> bytes:
        """The file's new content; lines keep their numbers. Newlines made up for lie inside the parentheses of an expression."""
        lost = b"\n" * (source[self.start : self.end].count(b"\n") - self.replacement.count("\n"))
        new = self.replacement.encode()
        new = new[:-1] + lost + b")" if new.endswith(b")") and new.startswith(b"(") else new + lost
        return source[: self.start] + new + source[self.end :]


def mutants_of_package(package: Path, only: frozenset[str] | None = None) -> list[Mutant]:
    """Every mutant of a package, by path and position; of the files in `only` where given. Paths start with the package's name."""
    found: list[Mutant] = []
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package.parent)
        if not SKIPPED_FOLDERS & set(inside.parts) and (only is None or inside.as_posix() in only):
            found += mutants_of_source(path.read_bytes(), inside.as_posix())
    return found


def mutants_of_source(source: bytes, path: str) -> list[Mutant]:
    """Mutants of one file; none where it is no Python or no UTF-8."""
    if not any(mark in source for mark in MARKS):
        return []
    try:
        tree = ast.parse(source)
        source.decode()
    except (SyntaxError, ValueError):
        return []
    finder = _Finder(source, path)
    finder.walk(tree, _Scope())
    return finder.found


@dataclass(frozen=True)
class _Scope:
    """The definition that encloses a node."""

    names: tuple[str, ...] = ()
    kernel: bool = False
    #: inside code of a kernel that runs for padded lanes only
    padding: bool = False
    function: ast.FunctionDef | None = None

    @property
    def symbol(self) -> str:
        return ".".join(self.names)

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Every name in the innermost function, its parameters included."""
        names = {node.id for node in self.nodes if isinstance(node, ast.Name)}
        return frozenset(names | {node.arg for node in self.nodes if isinstance(node, ast.arg)})

    @cached_property
    def prefix_written(self) -> frozenset[str]:
        """Buffers of which the innermost function touches a live prefix."""
        return frozenset(ast.unparse(node.value) for node in self.nodes if isinstance(node, ast.Subscript) and _is_live_prefix(node))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.function)) if self.function else []


class _Finder:
    def __init__(self, source: bytes, path: str) -> None:
        self.source, self.path = source, path
        self.found: list[Mutant] = []
        self.counts: dict[tuple[str, Kind, str], int] = {}
        self.line_starts = [0]
        for line in source.splitlines(keepends=True):
            self.line_starts.append(self.line_starts[-1] + len(line))

    def walk(self, node: ast.AST, scope: _Scope) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                self.walk(child, _Scope(names=(*scope.names, child.name)))
            elif isinstance(child, ast.FunctionDef):
                self.walk(child, _function_scope(child, scope))
            else:
                inner = scope if scope.padding or not (scope.kernel and _pads(child)) else replace(scope, padding=True)
                if scope.kernel:
                    self.kernel_sites(child, inner)
                else:
                    self.host_sites(child, scope)
                self.walk(child, inner)

    def kernel_sites(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if scope.padding and _is_call_of(call, "tl", "store"):
                pointer = re.match(r"\(*(\w+)", ast.unparse(call.args[0]))
                if pointer:
                    self.remove("kernel", scope, node, pointer.group(1))
        elif isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Return) and not node.orelse:
            test = ast.unparse(node.test)
            if NULL_GUARD.search(test) and INDEX_NAME.search(test):
                self.remove("guard", scope, node, re.split(r"\W+", test.lstrip("("))[0])
        elif isinstance(node, ast.Call) and _is_call_of(node, "tl", "maximum") and len(node.args) == 2 and _is_zero(node.args[1]):
            self.clamp(node, node.args[0], scope)

    def host_sites(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            self.host_call(node, node.value.func.attr, node.value.func.value, scope)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
            if _tail_start(node.targets[0]) is not None and _is_scalar(node.value):
                self.remove("assign", scope, node, ast.unparse(node.targets[0].value))
                self.move_bound(node.targets[0], scope)
        elif isinstance(node, ast.If):
            self.gate(node, scope)
            self.mode_branch(node, scope)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp) and _is_mode_choice(node.value):
            if ast.unparse(node.targets[0]).endswith("mode"):
                self.remove("narrow", scope, node, ast.unparse(node.targets[0]))
        elif isinstance(node, ast.IfExp):
            self.mode(node, scope)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("clamp", "clamp_", "clamp_min"):
            low = [word.value for word in node.keywords if word.arg == "min"] or node.args[:1]
            if len(node.args) + len(node.keywords) == 1 and low and _is_zero(low[0]):
                self.clamp(node, node.func.value, scope)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Attribute):
            self.exchange_unit(node, scope)

    def host_call(self, node: ast.Expr, method: str, target: ast.expr, scope: _Scope) -> None:
        if isinstance(target, ast.Subscript) and _tail_start(target) is not None and method in (*FILLS, "copy_"):
            self.remove("host" if method in FILLS else "copy", scope, node, ast.unparse(target.value))
            self.move_bound(target, scope)
        elif method in ("fill_", "zero_") and isinstance(target, ast.Name | ast.Attribute) and ast.unparse(target) in scope.prefix_written:
            self.remove("whole", scope, node, ast.unparse(target))

    def clamp(self, node: ast.expr, clamped: ast.expr, scope: _Scope) -> None:
        if INDEX_NAME.search(ast.unparse(clamped)):
            self.replace("clamp", scope, node, clamped, _word(clamped))

    def gate(self, node: ast.If, scope: _Scope) -> None:
        arms = [arm[0] for arm in (node.body, node.orelse) if len(arm) == 1]
        if len(arms) == 2 and all(_narrows_mode(arm) for arm in arms):
            target = arms[0].targets[0] if isinstance(arms[0], ast.Assign) else node.test
            if "decode_mode" in ast.unparse(node.test):
                self.remove("gate", scope, node, ast.unparse(target))
            elif ast.unparse(target).endswith("mode"):
                self.remove("narrow", scope, node, ast.unparse(target))

    def mode(self, node: ast.IfExp, scope: _Scope) -> None:
        full = _is_full_test(node.test)
        if full is not None and not isinstance(node.orelse if full else node.body, ast.Constant):
            padded = node.body if full else node.orelse
            self.replace("mode", scope, node, padded, _word(padded))

    def mode_branch(self, node: ast.If, scope: _Scope) -> None:
        """Both arms give the same names a value, one for FULL and one for the other modes."""
        full = _is_full_test(node.test)
        names = [ast.unparse(one.targets[0]) for one in node.body if isinstance(one, ast.Assign)]
        others = [ast.unparse(one.targets[0]) for one in node.orelse if isinstance(one, ast.Assign)]
        only_assignments = names == others and len(names) == len(node.body) == len(node.orelse)
        if full is None or not only_assignments or all(_narrows_mode(one) for one in node.body):
            return
        kept = node.body if full else node.orelse
        indent = "\n" + " " * node.col_offset
        self.emit("mode", scope, node, names[0], indent.join(ast.unparse(one) for one in kept))

    def move_bound(self, target: ast.Subscript, scope: _Scope) -> None:
        """Start the tail at the padded count, unless the tail already ends there (that would be the removed fill again)."""
        first = _first_dimension(target)
        if isinstance(first, ast.Slice) and isinstance(first.lower, ast.Name):
            start = first.lower
            padded = next((name for name in PADDED_NAME.get(start.id, ()) if name in scope.mentioned), None)
            if padded and (first.upper is None or padded not in ast.unparse(first.upper)):
                self.replace("bound", scope, start, padded, ast.unparse(target.value))

    def exchange_unit(self, node: ast.Subscript, scope: _Scope) -> None:
        if isinstance(node.slice, ast.Slice) and node.slice.lower is None and isinstance(node.slice.upper, ast.Name):
            bound = node.slice.upper
            tokens = next((name for name in TOKEN_NAME.get(bound.id, ()) if name in scope.mentioned), None)
            if tokens and ast.unparse(node.value).startswith("self."):
                self.replace("unit", scope, bound, tokens, ast.unparse(node.value))

    def remove(self, kind: Kind, scope: _Scope, node: ast.stmt, buffer: str) -> None:
        self.emit(kind, scope, node, buffer, "pass")

    def replace(self, kind: Kind, scope: _Scope, node: ast.expr, by: ast.expr | str, buffer: str) -> None:
        self.emit(kind, scope, node, buffer, by if isinstance(by, str) else f"({ast.unparse(by)})")

    def emit(self, kind: Kind, scope: _Scope, node: ast.stmt | ast.expr, buffer: str, replacement: str) -> None:
        key = (scope.symbol, kind, buffer)
        self.counts[key] = self.counts.get(key, 0) + 1
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        self.found.append(
            Mutant(
                id=f"{self.path}::{scope.symbol}::{kind}:{buffer}#{self.counts[key]}", kind=kind, path=self.path, symbol=scope.symbol,
                buffer=buffer, line=node.lineno, end_line=end_line, text=ast.unparse(node)[:160],
                start=self.line_starts[node.lineno - 1] + node.col_offset, end=self.line_starts[end_line - 1] + end_column,
                replacement=replacement,
            )
        )


def _function_scope(node: ast.FunctionDef, outer: _Scope) -> _Scope:
    kernel = any("jit" in ast.unparse(decorator) for decorator in node.decorator_list)
    return _Scope(names=(*outer.names, node.name), kernel=kernel, function=node)


def _is_live_prefix(node: ast.Subscript) -> bool:
    first = _first_dimension(node)
    return isinstance(first, ast.Slice) and first.lower is None and first.upper is not None and _counts_live(first.upper)


def _first_dimension(node: ast.Subscript) -> ast.expr:
    return node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice


def _counts_live(node: ast.expr) -> bool:
    return bool(LIVE_COUNT.search(ast.unparse(node)))


def _pads(node: ast.AST) -> bool:
    if isinstance(node, ast.For):
        over = ast.unparse(node.iter)
        return bool(PAD_LOOP_END.search(over) and PAD_LOOP_START.search(over))
    return isinstance(node, ast.If) and bool(PAD_BRANCH.search(ast.unparse(node.test)))


def _tail_start(target: ast.Subscript) -> ast.expr | None:
    """`n` of `X[n:...]` when it is a live count."""
    first = _first_dimension(target)
    return first.lower if isinstance(first, ast.Slice) and first.lower is not None and _counts_live(first.lower) else None


def _narrows_mode(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and "mode" in ast.unparse(node.targets[0]) and "CUDAGraphMode." in ast.unparse(node.value)


def _is_mode_choice(node: ast.IfExp) -> bool:
    return all(ast.unparse(arm).startswith("CUDAGraphMode.") for arm in (node.body, node.orelse))


def _is_full_test(test: ast.expr) -> bool | None:
    """True for `mode == CUDAGraphMode.FULL`, False for its negation, None for anything else."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and ast.unparse(test.comparators[0]) == "CUDAGraphMode.FULL":
        if isinstance(test.ops[0], ast.Eq | ast.Is):
            return True
        if isinstance(test.ops[0], ast.NotEq | ast.IsNot):
            return False
    return None


def _is_scalar(node: ast.expr) -> bool:
    """A value that a whole tail can be set to: a literal, a constant's name, or one element."""
    if isinstance(node, ast.UnaryOp):
        return _is_scalar(node.operand)
    if isinstance(node, ast.Subscript):
        return not isinstance(node.slice, ast.Slice | ast.Tuple)
    if isinstance(node, ast.Name | ast.Attribute):
        return bool(re.search(r"(PAD|NULL|pad|null)\w*$", ast.unparse(node)))
    return isinstance(node, ast.Constant)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def _is_call_of(node: ast.Call, module: str, name: str) -> bool:
    called = node.func
    return isinstance(called, ast.Attribute) and called.attr == name and isinstance(called.value, ast.Name) and called.value.id == module


def _word(node: ast.expr) -> str:
    """A name to call an expression by in an id."""
    found = re.search(r"[A-Za-z_][\w.]*", ast.unparse(node))
    return found.group(0) if found else "value"
