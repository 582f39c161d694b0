"""Abstract interpreter over the body of a Triton kernel: statements, paths, loops, and inlined helpers."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from graphlint.facts.expr import NONE, ONE, UNKNOWN, ZERO, Expr
from graphlint.facts.jit import parameters
from graphlint.facts.kernels import ExitPath
from graphlint.kernel_models import scan
from graphlint.kernel_models.accesses import Recorder
from graphlint.kernel_models.conditions import TRUE, conjunction, conjuncts, negate
from graphlint.kernel_models.evaluate import Evaluator
from graphlint.kernel_models.state import Frame, State

#: Helpers inside helpers beyond this depth stay opaque.
MAX_DEPTH = 8


class Interpreter(Evaluator):
    """Runs one kernel symbolically; `recorder` collects what it does to memory."""

    def __init__(self, node: ast.FunctionDef, qualname: str, lines: list[str], helpers: Mapping[str, ast.FunctionDef]) -> None:
        super().__init__(qualname, lines, Recorder(qualname))
        self.node = node
        self.helpers = helpers
        self.exits: list[ExitPath] = []
        self.called: list[str] = []
        self.frames: list[Frame] = []

    def run(self) -> None:
        """Interprets the whole kernel."""
        constexprs = set(scan.constexprs(self.node))
        env: dict[str, Expr] = {arg.arg: ("param", self.qualname, arg.arg) for arg in parameters(self.node)}
        self.recorder.constexprs = constexprs
        state = State(env)
        self.frames.append(Frame(self.node))
        self.block(self.node.body, state)
        if state.alive:
            self._leave(state, self.node.body[-1], early=False)

    def _leave(self, state: State, at: ast.stmt, early: bool) -> None:
        when = tuple(self.recorder.named(part) for part in state.conds)
        self.exits.append(ExitPath(when, tuple(state.stored), scan.span(at, self.lines), early))

    # ---- statements

    def block(self, body: list[ast.stmt], state: State) -> None:
        """Runs statements in order until the path ends."""
        for statement in body:
            if not state.alive:
                return
            self.statement(statement, state)

    def statement(self, node: ast.stmt, state: State) -> None:
        """Runs one statement."""
        self.spend(node)
        if isinstance(node, ast.Assign):
            value = self.eval(node.value, state)
            for target in node.targets:
                self.assign(target, value, state)
        elif isinstance(node, ast.AugAssign):
            self._augment(node, state)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.eval(node.value, state), state)
        elif isinstance(node, ast.Expr):
            self.eval(node.value, state)
        elif isinstance(node, ast.If):
            self._if(node, state)
        elif isinstance(node, ast.For):
            self._for(node, state)
        elif isinstance(node, ast.While):
            self._while(node, state)
        elif isinstance(node, ast.Return):
            self._return(node, state)
        elif isinstance(node, ast.With):
            self.block(node.body, state)
        elif isinstance(node, (ast.Break, ast.Continue)):
            self.note("loop control", node)
            state.blurred = True
        elif not isinstance(node, (ast.Pass, ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Raise, ast.Delete)):
            self.note(f"statement {type(node).__name__}", node)
            state.blurred = True
            self._havoc(_assigned([node]), state)

    def _augment(self, node: ast.AugAssign, state: State) -> None:
        value = self.eval(node.value, state)
        if isinstance(node.target, ast.Name):
            op = self.operator(node.op)
            before = state.env.get(node.target.id, UNKNOWN)
            self.assign(node.target, self.binary(op, before, value), state)

    def assign(self, target: ast.expr, value: Expr, state: State) -> None:
        """Binds a name or a tuple of names."""
        if isinstance(target, ast.Name):
            value = self.bounded(target.id, value)
            state.env[target.id] = value
            self.recorder.name(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, part in enumerate(target.elts):
                known = value[0] in ("tuple", "list") and index + 1 < len(value)
                self.assign(part, value[index + 1] if known else ("item", value, index), state)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, UNKNOWN, state)

    def _if(self, node: ast.If, state: State) -> None:
        test = self.eval(node.test, state)
        if test == TRUE or test in (("const", False), ONE, ZERO, NONE):
            self.block(node.body if test[1] else node.orelse, state)
            return
        known = set(state.conds)
        yes, no = conjuncts(test), conjuncts(negate(test))
        if yes and all(part in known for part in yes):
            self.block(node.body, state)
            return
        if no and all(part in known for part in no):
            self.block(node.orelse, state)
            return
        then, other = state.fork(yes), state.fork(no)
        self.block(node.body, then)
        self.block(node.orelse, other)
        state.blurred = state.blurred or then.blurred or other.blurred
        if then.alive and other.alive:
            conds = state.conds
            state.join(then, other)
            state.conds = conds
            self._merge(state, test, then.env, other.env)
        elif then.alive or other.alive:
            state.adopt(then if then.alive else other)
        else:
            state.alive = False

    def _merge(self, state: State, test: Expr, yes: dict[str, Expr], no: dict[str, Expr]) -> None:
        merged: dict[str, Expr] = {}
        for name in [*yes, *(name for name in no if name not in yes)]:
            a, b = yes.get(name), no.get(name)
            if a is None or b is None:
                merged[name] = a if a is not None else b  # type: ignore[assignment]
            elif a is b or a == b:
                merged[name] = a
            else:
                value = self.bounded(name, ("if", test, a, b))
                merged[name] = value
                self.recorder.name(name, value)
        state.env = merged

    def _for(self, node: ast.For, state: State) -> None:
        changed = _assigned(node.body)
        loop = self.loop_range(node.iter, state)
        self._havoc(changed, state)
        body = state.fork([])
        if loop is not None and isinstance(node.target, ast.Name):
            atom = self.recorder.fresh(node.target.id)
            self.recorder.loops[atom] = loop
            body.env[node.target.id] = atom
            body.loops = [*body.loops, atom]
        else:
            self.note("loop over something else than a range", node)
            body.blurred = True
            for name in _assigned([node]):
                body.env[name] = self.recorder.fresh(name)
        self.block(node.body, body)
        self._after_loop(changed, body, state)
        self.block(node.orelse, state)

    def _while(self, node: ast.While, state: State) -> None:
        changed = _assigned(node.body)
        self._havoc(changed, state)
        test = self.eval(node.test, state)
        body = state.fork(conjuncts(test))
        self.block(node.body, body)
        self._after_loop(changed, body, state)

    def _after_loop(self, changed: list[str], body: State, state: State) -> None:
        state.stored = list(dict.fromkeys([*state.stored, *body.stored]))
        state.blurred = state.blurred or body.blurred
        for name in changed:
            before = state.env.get(name)
            state.env[name] = self.recorder.opaque(name, before if before is not None else body.env.get(name, UNKNOWN))

    def _havoc(self, names: list[str], state: State) -> None:
        """Names that a loop assigns hold any of their values when its body starts."""
        for name in names:
            if name in state.env:
                state.env[name] = self.recorder.opaque(name, state.env[name])

    def _return(self, node: ast.Return, state: State) -> None:
        value = self.eval(node.value, state) if node.value is not None else NONE
        frame = self.frames[-1]
        if len(self.frames) == 1:
            self._leave(state, node, early=True)
        else:
            frame.returns.append((state.conds[frame.depth:], value))
        state.alive = False

    # ---- helpers

    def inline(self, name: str, node: ast.Call, args: list[Expr], kwargs: dict[str, Expr], state: State) -> Expr | None:
        """Value of a call of another jit function of the module, its accesses recorded; None when it cannot be inlined."""
        helper = self.helpers.get(name)
        if helper is None or len(self.frames) > MAX_DEPTH or any(frame.node is helper for frame in self.frames):
            return None
        if name not in self.called:
            self.called.append(name)
        if helper.args.vararg or helper.args.kwarg:
            return None
        env: dict[str, Expr] = {}
        for key, default in scan.default_nodes(helper):
            env[key] = self.eval(default, State({}))
        for arg, value in zip(parameters(helper), args, strict=False):
            env[arg.arg] = value
        env.update(kwargs)
        for arg in parameters(helper):
            env.setdefault(arg.arg, UNKNOWN)
        inner = state.fork([])
        inner.env = env
        frame = Frame(helper, len(inner.conds))
        self.frames.append(frame)
        self.block(helper.body, inner)
        self.frames.pop()
        state.stored = list(dict.fromkeys([*state.stored, *inner.stored]))
        state.blurred = state.blurred or inner.blurred
        if inner.alive:
            frame.returns.append((inner.conds[frame.depth:], NONE))
        value = frame.returns[-1][1] if frame.returns else NONE
        for conds, early in reversed(frame.returns[:-1]):
            value = early if value == early else ("if", conjunction(conds), early, value)
        return self.bounded(name, value)


def _assigned(body: list[ast.stmt]) -> list[str]:
    """Names that the statements bind, in order."""
    names: dict[str, None] = {}
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                names[part.id] = None
    return list(names)
