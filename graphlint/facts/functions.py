"""Function bodies to events: one forward pass, local names replaced, branches merged, conditions kept as guards."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Literal

from graphlint.facts.evaluate import MAX_NODES, Evaluator
from graphlint.facts.expr import NONE, Expr
from graphlint.facts.kernels import Span
from graphlint.facts.model import Binding, Event, EventKind, Function, Param

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def span_of(node: ast.AST) -> Span:
    """1-based span of a node (columns in UTF-8 bytes as `ast` counts them, which are characters in ASCII lines)."""
    return Span(node.lineno, node.col_offset + 1, node.end_lineno or node.lineno, (node.end_col_offset or 0) + 1)  # type: ignore[attr-defined]


def negate(test: Expr) -> Expr:
    """The condition that holds when `test` does not."""
    return test[2] if test[0] == "un" and test[1] == "not" else ("un", "not", test)


class FunctionWalker:
    """Walks one function (and, through `collect`, the functions defined in it)."""

    def __init__(
        self,
        module: str,
        qualname: str,
        owner: str | None,
        parent: str | None,
        collect: list[Function],
        on_import: Callable[[ast.Import | ast.ImportFrom], None],
    ) -> None:
        self.module = module
        self.qualname = qualname
        self.id = f"{module}:{qualname}"
        self.owner = owner
        self.parent = parent
        self.collect = collect
        self.on_import = on_import
        self.events: list[Event] = []
        self.bindings: list[Binding] = []
        self.guards: tuple[Expr, ...] = ()
        self.withs: tuple[Expr, ...] = ()
        self.lambdas = 0
        self.eval = Evaluator(module, self._on_call, self._on_lambda)
        self.eval.owner = owner

    # -- functions -----------------------------------------------------------------------------------------------------------------
    def run(self, node: FunctionNode, env: dict[str, Expr]) -> Function:
        """Facts of `node`; `env` holds the names of the enclosing function."""
        self.eval.env = dict(env)
        params = self._params(node.args)
        for param in params:
            self.eval.env[param.name] = ("param", self.id, param.name)
        if isinstance(node, ast.Lambda):
            self._emit("return", self.eval(node.body), None, node)
            returns: Expr | None = None
            decorators: tuple[Expr, ...] = ()
            name = "<lambda>"
        else:
            returns = self._annotation(node.returns)
            decorators = tuple(self._quiet(d) for d in node.decorator_list)
            name = node.name
            self.block(node.body)
        return Function(
            self.qualname,
            name,
            self.owner,
            self.parent,
            params,
            returns,
            decorators,
            tuple(self.events),
            tuple(self.bindings),
            span_of(node),
            False,
        )

    def _params(self, args: ast.arguments) -> tuple[Param, ...]:
        return read_params(args, self.module)

    def _quiet(self, node: ast.expr | None) -> Expr:
        return quiet(node, self.module)

    def _annotation(self, node: ast.expr | None) -> Expr | None:
        return None if node is None else annotation(node, self.module)

    def _on_lambda(self, node: ast.Lambda) -> Expr:
        self.lambdas += 1
        return self._nested(node, f"<lambda:{node.lineno}:{node.col_offset}>")

    def _nested(self, node: FunctionNode, name: str) -> Expr:
        qualname = f"{self.qualname}.{name}"
        walker = FunctionWalker(self.module, qualname, self.owner, self.qualname, self.collect, self.on_import)
        self.collect.append(walker.run(node, self.eval.env))
        return ("func", f"{self.module}:{qualname}")

    # -- events --------------------------------------------------------------------------------------------------------------------
    def _emit(self, kind: EventKind, a: Expr, b: Expr | None, node: ast.AST, op: str = "") -> None:
        self.events.append(Event(kind, a, b, op, self.guards, self.withs, span_of(node)))

    def _on_call(self, expr: Expr, node: ast.Call) -> None:
        self._emit("call", expr, None, node)

    # -- statements ----------------------------------------------------------------------------------------------------------------
    def block(self, body: list[ast.stmt]) -> bool:
        """Walk statements; True when the end of the block cannot be reached. Guards of early exits last to the end of the block."""
        outer = self.guards
        for stmt in body:
            if self._statement(stmt):
                self.guards = outer
                return True
        self.guards = outer
        return False

    def _statement(self, stmt: ast.stmt) -> bool:
        if isinstance(stmt, ast.Expr):
            self.eval(stmt.value)
        elif isinstance(stmt, ast.Assign):
            value = self.eval(stmt.value)
            for target in stmt.targets:
                self._assign(target, value, stmt)
        elif isinstance(stmt, ast.AnnAssign):
            if stmt.value is not None:
                self._assign(stmt.target, self.eval(stmt.value), stmt)
            elif isinstance(stmt.target, ast.Name):
                self.eval.env[stmt.target.id] = ("local", stmt.target.id)
        elif isinstance(stmt, ast.AugAssign):
            self._augment(stmt)
        elif isinstance(stmt, ast.If):
            return self._if(stmt)
        elif isinstance(stmt, (ast.For, ast.AsyncFor)):
            self._loop(stmt.body, stmt.orelse, stmt.target, ("iter", self.eval(stmt.iter)))
        elif isinstance(stmt, ast.While):
            test = self.eval(stmt.test)
            self._loop(stmt.body, stmt.orelse, None, test)
        elif isinstance(stmt, (ast.With, ast.AsyncWith)):
            return self._with(stmt)
        elif isinstance(stmt, ast.Return):
            self._emit("return", self.eval(stmt.value), None, stmt)
            return True
        elif isinstance(stmt, ast.Raise):
            self.eval(stmt.exc)
            return True
        elif isinstance(stmt, (ast.Continue, ast.Break)):
            return True
        elif isinstance(stmt, ast.Assert):
            test = self.eval(stmt.test)
            self._emit("assert", test, None, stmt)
            self.guards = (*self.guards, test)  # holds to the end of the block, as after an early exit
        elif isinstance(stmt, ast.Try) or type(stmt).__name__ == "TryStar":
            return self._try(stmt)  # type: ignore[arg-type]
        elif isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.eval.env[stmt.name] = ("func", f"{self.id}.{stmt.name}")
            self._nested(stmt, stmt.name)
        elif isinstance(stmt, ast.Delete):
            for target in stmt.targets:
                self._emit("delete", self.eval(target), None, stmt)
        elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
            self.on_import(stmt)
            for alias in stmt.names:
                self.eval.env.pop((alias.asname or alias.name).split(".")[0], None)
        elif isinstance(stmt, ast.Match):
            self._match(stmt)
        return False

    def _assign(self, target: ast.expr, value: Expr, stmt: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self.bindings.append(Binding(target.id, value, self.guards, span_of(stmt)))
            self.eval.bind(target.id, value)
        elif isinstance(target, ast.Subscript):
            self._emit("store", self.eval(target), value, stmt)
        elif isinstance(target, ast.Attribute):
            self._emit("bind", self.eval(target), value, stmt)
        elif isinstance(target, ast.Starred):
            self._assign(target.value, ("local", "rest"), stmt)
        elif isinstance(target, (ast.Tuple, ast.List)):
            known = value
            while known[0] == "let":
                known = known[2]
            direct = known[0] in ("tuple", "list") and len(known) - 1 == len(target.elts) and not any(p[0] == "star" for p in known[1:])
            for index, part in enumerate(target.elts):
                self._assign(part, known[index + 1] if direct else ("item", value, index), stmt)

    def _augment(self, stmt: ast.AugAssign) -> None:
        value = self.eval(ast.copy_location(ast.BinOp(_as_load(stmt.target), stmt.op, stmt.value), stmt))
        op = value[1] if value[0] == "bin" else "?"
        if isinstance(stmt.target, ast.Name):
            self.bindings.append(Binding(stmt.target.id, value, self.guards, span_of(stmt)))
            self.eval.bind(stmt.target.id, value)
        elif isinstance(stmt.target, ast.Subscript):
            self._emit("store", self.eval(stmt.target), value, stmt, op)
        else:
            self._emit("bind", self.eval(stmt.target), value, stmt, op)

    def _if(self, stmt: ast.If) -> bool:
        test = self.eval(stmt.test)
        before, outer = dict(self.eval.env), self.guards
        self.guards = (*outer, test)
        ends = self.block(stmt.body)
        after_body = self.eval.env
        self.eval.env = before
        self.guards = (*outer, negate(test))
        else_ends = self.block(stmt.orelse)
        after_else = self.eval.env
        self.guards = outer
        if ends and else_ends:
            return True
        if ends:
            self.guards = (*outer, negate(test))
        elif else_ends:
            self.eval.env, self.guards = after_body, (*outer, test)
        else:
            self.eval.env = self._merge(test, after_body, after_else)
        return False

    def _merge(self, test: Expr, a: dict[str, Expr], b: dict[str, Expr]) -> dict[str, Expr]:
        merged = dict(b)
        for name, value in a.items():
            other = b.get(name)
            if other is value or other == value:
                continue
            if other is None:
                merged[name] = value
                continue
            joined: Expr = ("if", test, value, other) if test != NONE else ("phi", value, other)
            if self.eval.size(joined) > MAX_NODES:
                joined = ("phi", *(part if self.eval.size(part) <= MAX_NODES // 2 else ("local", name) for part in (value, other)))
            merged[name] = ("let", name, joined)
        return merged

    def _loop(self, body: list[ast.stmt], orelse: list[ast.stmt], target: ast.expr | None, element: Expr) -> None:
        before = dict(self.eval.env)
        if target is not None:
            self._assign(target, element, target)  # type: ignore[arg-type]
        for name in _bound_names(body):
            if name in before:
                self.eval.env[name] = (
                    ("let", name, ("phi", before[name], ("local", name)))
                    if before[name][0] != "param"
                    else ("phi", before[name], ("local", name))
                )
        outer = self.guards
        self.guards = (*outer, ("call", ("global", "__loop__", ""), (element,), (), 0))
        self.block(body)
        self.guards = outer
        self.eval.env = self._merge(NONE, self.eval.env, before)
        self.block(orelse)

    def _with(self, stmt: ast.With | ast.AsyncWith) -> bool:
        outer = self.withs
        for item in stmt.items:
            manager = self.eval(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, ("call", ("attr", manager, "__enter__"), (), (), stmt.lineno), stmt)
            self.withs = (*self.withs, manager)
        ends = self.block(stmt.body)
        self.withs = outer
        return ends

    def _try(self, stmt: ast.Try) -> bool:
        before = dict(self.eval.env)
        ends = self.block(stmt.body)
        after = self.eval.env
        for handler in stmt.handlers:
            self.eval.env = dict(before)
            if handler.name:
                self.eval.env[handler.name] = ("local", handler.name)
            if not self.block(handler.body):
                after = self._merge(NONE, after, self.eval.env)
        self.eval.env = after
        self.block(stmt.orelse)
        return self.block(stmt.finalbody) or (ends and not stmt.handlers)

    def _match(self, stmt: ast.Match) -> None:
        subject = self.eval(stmt.subject)
        before = dict(self.eval.env)
        merged = before
        outer = self.guards
        for case in stmt.cases:
            self.eval.env = dict(before)
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None)
                if isinstance(name, str):
                    self.eval.env[name] = ("local", name)
            self.guards = (*outer, ("call", ("global", "__case__", ""), (subject,), (), case.pattern.lineno))
            if not self.block(case.body):
                merged = self._merge(NONE, merged, self.eval.env)
        self.guards = outer
        self.eval.env = merged


def _bound_names(body: list[ast.stmt]) -> set[str]:
    """Local names that some statement of a block binds, blocks inside it included (`:=` in statements of their own and in tests)."""
    found: set[str] = set()
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Assign):
            stack.extend(node.targets)
            _walrus(node.value, found)
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
            stack.append(node.target)
            if isinstance(node, (ast.For, ast.AsyncFor)):
                stack.extend(node.body)
                stack.extend(node.orelse)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, (ast.Tuple, ast.List)):
            stack.extend(node.elts)
        elif isinstance(node, ast.Starred):
            stack.append(node.value)
        elif isinstance(node, (ast.If, ast.While)):
            _walrus(node.test, found)
            stack.extend(node.body)
            stack.extend(node.orelse)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            stack.extend(item.optional_vars for item in node.items if item.optional_vars is not None)
            stack.extend(node.body)
        elif isinstance(node, ast.Expr):
            _walrus(node.value, found)
        elif isinstance(node, (ast.Try, ast.Match)) or type(node).__name__ == "TryStar":
            found.update(part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
    return found


def _walrus(node: ast.expr, found: set[str]) -> None:
    if isinstance(node, ast.NamedExpr):
        found.add(node.target.id)
        _walrus(node.value, found)
    elif isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Call)):
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                _walrus(part, found)


def _as_load(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Name):
        return ast.copy_location(ast.Name(node.id, ast.Load()), node)
    if isinstance(node, ast.Attribute):
        return ast.copy_location(ast.Attribute(node.value, node.attr, ast.Load()), node)
    if isinstance(node, ast.Subscript):
        return ast.copy_location(ast.Subscript(node.value, node.slice, ast.Load()), node)
    return node


def quiet(node: ast.expr | None, module: str) -> Expr:
    """An expression outside any function body: no environment, no events."""
    return Evaluator(module, lambda *_: None, lambda node: ("func", "<lambda>"))(node)


def annotation(node: ast.expr, module: str) -> Expr:
    """An annotation; strings in it are read as code, as in `tuple["Batch | None", int]` (not those of `Literal`)."""
    return quiet(_unquoted(node), module)


def _unquoted(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str):
            return node
        try:
            return _unquoted(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return ast.Constant(None)
    if isinstance(node, ast.Subscript):
        name = node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id if isinstance(node.value, ast.Name) else ""
        if name == "Literal":
            return node
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        parts = [_unquoted(item) for item in items]
        if all(part is item for part, item in zip(parts, items, strict=True)):
            return node
        return ast.Subscript(node.value, ast.Tuple(parts, ast.Load()) if isinstance(node.slice, ast.Tuple) else parts[0], ast.Load())
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        left, right = _unquoted(node.left), _unquoted(node.right)
        return node if left is node.left and right is node.right else ast.BinOp(left, node.op, right)
    return node


def read_params(args: ast.arguments, module: str) -> tuple[Param, ...]:
    """Parameters of a function in call order."""
    result: list[Param] = []
    positional = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)

    def add(arg: ast.arg, default: ast.expr | None, kind: Literal["pos", "kw", "args", "kwargs"]) -> None:
        note = None if arg.annotation is None else annotation(arg.annotation, module)
        result.append(Param(arg.arg, note, None if default is None else quiet(default, module), kind))

    for arg, default in zip(positional, defaults, strict=False):
        add(arg, default, "pos")
    if args.vararg:
        add(args.vararg, None, "args")
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=False):
        add(arg, default, "kw")
    if args.kwarg:
        add(args.kwarg, None, "kwargs")
    return tuple(result)
