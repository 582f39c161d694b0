"""The function around a line, parsed on its own, with places in terms of the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from graphlint.finding import Edit

_DEF = re.compile(r"(\s*)(async\s+)?def\s")
_CLOSER = re.compile(r"\s*[)\]}#]")


class Island:
    """One function of a file. `node`'s line numbers are those of the file less `offset`; `at` and `line_of` translate."""

    def __init__(self, path: str, lines: Sequence[str], line: int) -> None:
        self.path, self.lines = path, lines
        start = _head(lines, line)
        if start is None:
            raise ValueError(f"{path}:{line} is in no function")
        indent = len(lines[start - 1]) - len(lines[start - 1].lstrip())
        end = start
        while end < len(lines) and not _outside(lines[end], indent):
            end += 1
        text = "\n".join(lines[start - 1 : end])
        self.offset = start - 1
        if indent:
            text, self.offset = "if True:\n" + text, start - 2
        tree = ast.parse(text)
        wanted = line - self.offset
        functions = [
            node for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= wanted <= (node.end_lineno or 0)
        ]
        if not functions:
            raise ValueError(f"{path}:{line} is in no function")
        self.node = max(functions, key=lambda node: node.lineno)

    @property
    def jit(self) -> bool:
        """Whether a decorator makes it a kernel; decorators stand above the part that is parsed."""
        number = self.line_of(self.node) - 2
        while number >= 0 and self.lines[number].strip() and not _DEF.match(self.lines[number]):
            if re.match(r"\s*@.*\bjit\b", self.lines[number]):
                return True
            number -= 1
        return False

    def line_of(self, node: ast.stmt | ast.expr) -> int:
        """Line in the file."""
        return node.lineno + self.offset

    def end_of(self, node: ast.stmt | ast.expr) -> int:
        """Last line in the file."""
        return (node.end_lineno or node.lineno) + self.offset

    def covers(self, node: ast.stmt | ast.expr, line: int) -> bool:
        """Whether `node` stands on this line of the file."""
        return self.line_of(node) <= line <= self.end_of(node)

    def indent(self, node: ast.stmt) -> str:
        """White space before a statement."""
        text = self.lines[self.line_of(node) - 1]
        return text[: len(text) - len(text.lstrip())]

    def insert_before(self, node: ast.stmt, text: str) -> Edit:
        """Whole lines before a statement."""
        line = self.line_of(node)
        return Edit(self.path, line, 1, line, 1, text)

    def insert_after(self, node: ast.stmt, text: str) -> Edit:
        """Whole lines after a statement (and after the comment behind it)."""
        line = self.end_of(node)
        if line >= len(self.lines):  # the file may end without a line break
            last = len(self.lines[line - 1]) + 1
            return Edit(self.path, line, last, line, last, "\n" + text.rstrip("\n"))
        return Edit(self.path, line + 1, 1, line + 1, 1, text)

    def replace(self, node: ast.stmt | ast.expr, text: str) -> Edit:
        """The text of a node, exactly."""
        first, last = self.line_of(node), self.end_of(node)
        column = self._column(first, node.col_offset)
        return Edit(self.path, first, column, last, self._column(last, node.end_col_offset or 0), text)

    def delete(self, node: ast.stmt) -> Edit:
        """The lines of a statement."""
        return Edit(self.path, self.line_of(node), 1, self.end_of(node) + 1, 1, "")

    def _column(self, line: int, offset: int) -> int:
        """1-based column in characters of a byte offset."""
        return len(self.lines[line - 1].encode()[:offset].decode(errors="replace")) + 1

    def statements(self) -> Iterator[ast.stmt]:
        """Every statement of the function, outer ones first, in source order."""
        return (node for node in walk(self.node.body))

    def block_of(self, wanted: ast.stmt) -> list[ast.stmt]:
        """The block that a statement stands in."""
        for node in ast.walk(self.node):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list) and any(one is wanted for one in block):
                    return block
        return []


def walk(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a block and of the blocks in it."""
    for stmt in body:
        yield stmt
        for name in ("body", "orelse", "finalbody"):
            yield from walk(getattr(stmt, name, []) or [])
        for handler in getattr(stmt, "handlers", []):
            yield from walk(handler.body)


def names_in(node: ast.AST) -> set[str]:
    """Names that an expression or statement reads or binds."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _head(lines: Sequence[str], line: int) -> int | None:
    """Line of the outermost-needed `def` above: the nearest one that is indented less than the line itself."""
    text = lines[line - 1] if line <= len(lines) else ""
    depth = len(text) - len(text.lstrip())
    for number in range(line, 0, -1):
        found = _DEF.match(lines[number - 1])
        if found and (len(found[1]) < depth or number == line):
            return number
    return None


def _outside(line: str, indent: int) -> bool:
    """Whether a line is the first behind a function indented by `indent`."""
    return bool(line.strip()) and len(line) - len(line.lstrip()) <= indent and not _CLOSER.match(line)
