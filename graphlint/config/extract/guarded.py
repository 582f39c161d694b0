"""A function body as guarded values: which value results under which condition.

Conditions are kept as source text over the names that are not local to the function; locals and one-line helper functions of the
same module are written out. A loop over the layers of a KV-cache group is read as if the group held one layer, which is exact when
all layers agree.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple


class Case(NamedTuple):
    """`value` results when every condition of `when` holds."""

    when: tuple[str, ...]
    value: ast.expr
    line: int


Inline = Callable[[str], "ast.FunctionDef | None"]


class _Substitute(ast.NodeTransformer):
    def __init__(self, env: dict[str, ast.expr], inline: Inline, depth: int) -> None:
        self.env = env
        self.inline = inline
        self.depth = depth

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return deepcopy(self.env[node.id]) if node.id in self.env else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if self.depth and isinstance(node.func, ast.Name):
            helper = self.inline(node.func.id)
            value = _single_return(helper) if helper is not None and not helper.args.args else None
            if value is not None:
                return _Substitute({}, self.inline, self.depth - 1).visit(deepcopy(value))  # type: ignore[no-any-return]
        return node


def _single_return(node: ast.FunctionDef) -> ast.expr | None:
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if len(body) == 1 and isinstance(body[0], ast.Return):
        return body[0].value
    return None


def guarded_values(function: ast.FunctionDef, inline: Inline = lambda name: None, limit: int = 24) -> list[Case]:
    """All (condition, returned expression) pairs of a function, in source order."""
    cases: list[Case] = []
    _walk(function.body, {}, (), cases, inline, limit)
    return cases


def _text(node: ast.expr, env: dict[str, ast.expr], inline: Inline) -> str:
    return ast.unparse(_Substitute(env, inline, 3).visit(deepcopy(node)))


def _negated(text: str) -> str:
    return f"not ({text})"


def _walk(body: list[ast.stmt], env: dict[str, ast.expr], when: tuple[str, ...], cases: list[Case], inline: Inline, limit: int) -> bool:
    """Walks one block; True when every path through it returned."""
    for index, node in enumerate(body):
        if len(cases) >= limit:
            return True
        if isinstance(node, ast.Return):
            value = node.value if node.value is not None else ast.Constant(None)
            value = _Substitute(env, inline, 3).visit(deepcopy(value))
            if isinstance(value, ast.IfExp):
                test = ast.unparse(value.test)
                cases.append(Case((*when, test), value.body, node.lineno))
                cases.append(Case((*when, _negated(test)), value.orelse, node.lineno))
            else:
                cases.append(Case(when, value, node.lineno))
            return True
        if isinstance(node, ast.If):
            test = _text(node.test, env, inline)
            rest = body[index + 1 :]
            _walk([*node.body, *rest], dict(env), (*when, test), cases, inline, limit)
            _walk([*node.orelse, *rest], dict(env), (*when, _negated(test)), cases, inline, limit)
            return True
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            env[node.targets[0].id] = _Substitute(env, inline, 3).visit(deepcopy(node.value))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            env[node.target.id] = _Substitute(env, inline, 3).visit(deepcopy(node.value))
        elif isinstance(node, ast.For):
            _one_pass(node, env, inline)
        elif isinstance(node, ast.Raise):
            return True
    return False


def _one_pass(loop: ast.For, env: dict[str, ast.expr], inline: Inline) -> None:
    """`for x in xs: if COND: flag = False; break` leaves `flag and not COND`."""
    for node in loop.body:
        if not isinstance(node, ast.If):
            continue
        for inner in node.body:
            if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name) and isinstance(inner.value, ast.Constant):
                name = inner.targets[0].id
                test = _Substitute(env, inline, 3).visit(deepcopy(node.test))
                before = env.get(name, ast.Constant(not inner.value.value))
                if inner.value.value is False:
                    env[name] = ast.BoolOp(ast.And(), [before, ast.UnaryOp(ast.Not(), test)])
                elif inner.value.value is True:
                    env[name] = ast.BoolOp(ast.Or(), [before, test])
