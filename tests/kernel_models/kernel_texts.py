"""Reads the kernels of the fixtures and shows their models as text."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from graphlint.facts.expr import show
from graphlint.facts.jit import is_kernel
from graphlint.facts.kernels import KernelModel, Segment
from graphlint.kernel_models import build

FIXTURES = Path(__file__).parents[2] / "fixtures" / "triton"


@cache
def models(fixture: str) -> dict[str, KernelModel]:
    """All kernels of a fixture file by qualified name."""
    return models_of((FIXTURES / f"{fixture}.py").read_text())


def models_of(source: str) -> dict[str, KernelModel]:
    """All kernels of a source text by qualified name."""
    out: dict[str, KernelModel] = {}
    _collect(ast.parse(source).body, "", {}, source.splitlines(), out)
    return out


def _collect(
    body: list[ast.stmt], prefix: str, helpers: dict[str, ast.FunctionDef], lines: list[str], out: dict[str, KernelModel],
) -> None:
    known = {**helpers, **{node.name: node for node in body if isinstance(node, ast.FunctionDef) and is_kernel(node)}}
    for node in body:
        if isinstance(node, ast.ClassDef):
            _collect(node.body, f"{prefix}{node.name}.", known, lines, out)
        elif isinstance(node, ast.FunctionDef) and is_kernel(node):
            out[prefix + node.name] = build(node, prefix + node.name, lines, known)


def text(segment: Segment) -> str:
    """One line for a segment."""
    inner = "" if segment.inner is None else f" x [{show(segment.inner[0])}, {show(segment.inner[1])})"
    value = "" if segment.value is None else f" = {show(segment.value)}"
    when = "".join(f" when {show(cond)}" for cond in segment.when)
    exact = "" if segment.exact else " inexact"
    return f"{segment.pointer} {segment.role} [{show(segment.lo)}, {show(segment.hi)}){inner}{value}{when}{exact}"


def stores(model: KernelModel) -> list[str]:
    """The stores and atomics of a model."""
    return [text(segment) for segment in model.segments if segment.kind != "load"]


def loads(model: KernelModel) -> list[str]:
    """The loads of a model."""
    return [text(segment) for segment in model.segments if segment.kind == "load"]
