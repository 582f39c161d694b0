"""The model never raises: random edits of real-looking kernels, odd syntax, wrong arity."""

from __future__ import annotations

import ast
import copy
import random

import pytest
from kernel_texts import FIXTURES, models_of

from graphlint.facts.jit import is_kernel
from graphlint.kernel_models import build, coverage

ODD = [
    "tl.store()", "tl.load()", "tl.store(1, 2, 3, 4, 5)", "tl.program_id(x)", "for i in x: tl.store(out_ptr + i, i)",
    "for i, j in range(3): pass", "while n: n = n - 1", "a, *b = tl.load(out_ptr), 1", "out_ptr += 1", "x = x + 1",
    "tl.store(out_ptr + (lambda q: q)(1), 0)", "return tl.load(tl.load(out_ptr))", "tl.store(-out_ptr, 1)", "tl.arange()", "tl.where(1)",
    "match n:\n        case 1:\n            tl.store(out_ptr, 1)", "tl.store(out_ptr[0], 1)", "n.store([0], 1)", "tl.range()",
    "for i in range(): pass", "for i in range(1, 2, 3, 4): pass", "odd_kernel(out_ptr, n)", "tl.store(*n, **x)",
    "tl.store(out_ptr + n * n * n, n, mask=n[None, :] < 3)", "x = [tl.load(out_ptr + q) for q in range(3)]", "import os", "del n",
    "with n as q: tl.store(out_ptr, 1)", "tl.store(out_ptr + tl.program_id(0) // 0, 1 // 0)", "n = -None", "n = not 'a'",
]


@pytest.mark.parametrize("line", ODD)
def test_odd_statements(line: str) -> None:
    source = f"@triton.jit\ndef odd_kernel(out_ptr, n):\n    {line}\n    tl.store(out_ptr + tl.program_id(0), 5)\n"
    model = models_of(source)["odd_kernel"]
    assert model.qualname == "odd_kernel"
    assert not [note for note in model.unknown if note.startswith("model incomplete")], model.unknown


def test_random_edits() -> None:
    kernels = [
        node
        for path in sorted(FIXTURES.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and is_kernel(node)
    ]
    parts = [part for node in kernels for part in ast.walk(node)]
    expressions = [part for part in parts if isinstance(part, ast.expr) and not isinstance(getattr(part, "ctx", None), ast.Store)]
    statements = [part for part in parts if isinstance(part, ast.stmt) and not isinstance(part, ast.FunctionDef)]
    for seed in range(150):
        pick = random.Random(seed)
        node = copy.deepcopy(pick.choice(kernels))
        node.body = [_Edit(pick, expressions, statements).visit(statement) for statement in node.body]
        model = build(node, "edited", [], {other.name: other for other in kernels})
        assert model.qualname == "edited"
        assert not [note for note in model.unknown if note.startswith("model incomplete")], (seed, model.unknown)
        for pointer in model.pointers:
            assert coverage(model, pointer).pointer == pointer


class _Edit(ast.NodeTransformer):
    def __init__(self, pick: random.Random, expressions: list[ast.expr], statements: list[ast.stmt]) -> None:
        self.pick = pick
        self.expressions = expressions
        self.statements = statements

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        if self.pick.random() < 0.1:
            if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                return self.pick.choice(self.expressions)
            if isinstance(node, ast.stmt):
                return self.pick.choice(self.statements)
        return node


def test_a_kernel_beyond_the_budget_is_inexact() -> None:
    body = "".join(f"    tl.store(out_ptr + {i}, {i})\n" for i in range(7000))
    model = models_of("@triton.jit\ndef long(out_ptr):\n" + body)["long"]
    assert any(note.startswith("model incomplete") for note in model.unknown)
    assert model.segments
    assert not any(segment.exact for segment in model.segments)


def test_other_compilers_are_not_kernels() -> None:
    for decorator in ("numba.jit", "torch.jit.script", "jax.jit", "functools.cache", "cute.jit"):
        (node,) = ast.parse(f"@{decorator}\ndef f(x): pass\n").body
        assert not is_kernel(node)
