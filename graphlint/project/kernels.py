"""The kernels of a file: found in modules and classes, modelled with the helpers beside them."""

from __future__ import annotations

import ast

from graphlint.facts.extract import is_jit
from graphlint.facts.kernels import KernelModel
from graphlint.kernel_models import build


def kernels_of(tree: ast.Module, lines: list[str]) -> tuple[KernelModel, ...]:
    """Models of every jit function of a module, nested classes and conditional definitions included."""
    found: list[tuple[str, ast.FunctionDef]] = []
    _collect(tree.body, "", found)
    helpers = {name.rsplit(".", 1)[-1]: node for name, node in found}
    return tuple(build(node, name, lines, helpers) for name, node in found)


def _collect(body: list[ast.stmt], prefix: str, found: list[tuple[str, ast.FunctionDef]]) -> None:
    for stmt in body:
        if isinstance(stmt, ast.FunctionDef):
            if is_jit(stmt):
                found.append((prefix + stmt.name, stmt))
        elif isinstance(stmt, ast.ClassDef):
            _collect(stmt.body, f"{prefix}{stmt.name}.", found)
        elif isinstance(stmt, (ast.If, ast.Try, ast.With)):
            for part in (stmt.body, getattr(stmt, "orelse", []), getattr(stmt, "finalbody", [])):
                _collect(part, prefix, found)
            for handler in getattr(stmt, "handlers", []):
                _collect(handler.body, prefix, found)
