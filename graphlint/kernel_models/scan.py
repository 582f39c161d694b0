"""What the definition of a Triton kernel says of itself: decorators, constexpr parameters, defaults, spans."""

from __future__ import annotations

import ast

from graphlint.facts.jit import decorator_name, parameters
from graphlint.facts.kernels import Span

_WRAPPERS = ("autotune", "heuristics")


def wrappers(node: ast.FunctionDef) -> tuple[str, ...]:
    """The decorators besides jit that change how a kernel is launched."""
    names = [decorator_name(decorator) for decorator in node.decorator_list]
    return tuple(name for name in names if name in _WRAPPERS)


def constexprs(node: ast.FunctionDef) -> tuple[str, ...]:
    """Parameters annotated `tl.constexpr` (or a bare `constexpr`, or the annotation as a string)."""
    out = []
    for arg in parameters(node):
        text = arg.annotation
        if text is None:
            continue
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            if "constexpr" in text.value:
                out.append(arg.arg)
        elif any(decorator_name(part) == "constexpr" for part in ast.walk(text) if isinstance(part, ast.expr)):
            out.append(arg.arg)
    return tuple(out)


def default_nodes(node: ast.FunctionDef) -> list[tuple[str, ast.expr]]:
    """(parameter, default) pairs."""
    positional = [*node.args.posonlyargs, *node.args.args]
    pairs = list(zip(positional[len(positional) - len(node.args.defaults):], node.args.defaults, strict=False))
    pairs += [(arg, value) for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=False) if value is not None]
    return [(arg.arg, value) for arg, value in pairs]


def span(node: ast.stmt | ast.expr, lines: list[str]) -> Span:
    """Source range of a node; columns count characters, not bytes."""
    end_line = node.end_lineno or node.lineno
    return Span(
        node.lineno, _column(lines, node.lineno, node.col_offset), end_line, _column(lines, end_line, node.end_col_offset or 0),
    )


def _column(lines: list[str], line: int, offset: int) -> int:
    if 0 < line <= len(lines) and not lines[line - 1].isascii():
        return len(lines[line - 1].encode()[:offset].decode(errors="replace")) + 1
    return offset + 1
