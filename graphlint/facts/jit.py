"""Triton kernels as source: which definitions are kernels, and which parameters they load from and store to.

The symbolic model of a kernel costs many times what this does, so facts hold the source, and a model is built when a launch asks for it.
"""

from __future__ import annotations

import ast

from graphlint.facts.kernels import KernelSource, Span

#: compilers whose `jit` is not Triton's
_OTHERS = frozenset({"numba", "nb", "jax", "torch", "cute", "cutlass", "ti", "taichi", "tilelang", "T"})
#: modules of the language: what their functions are given is stored to by none but `store` and the atomics
_LANGUAGE = frozenset({"tl", "triton", "language", "libdevice", "tldevice", "math"})
_BUILTIN = frozenset({"range", "min", "max", "len", "int", "float", "abs", "print", "isinstance"})


def decorator_name(node: ast.expr) -> str:
    """Last name of a decorator: `triton.jit(...)` gives jit."""
    while isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_kernel(node: ast.AST) -> bool:
    """Whether a definition is a `@triton.jit` function (plain, with arguments, under autotune or heuristics, static in a class).

    `jit` of another compiler (`numba.jit`, `torch.jit.script`, `jax.jit`) is not one.
    """
    if not isinstance(node, ast.FunctionDef):
        return False
    for decorator in node.decorator_list:
        name = decorator_name(decorator)
        if name == "jit" and _root(decorator) not in _OTHERS:
            return True
        if name.endswith("triton_jit") or name.startswith("triton_jit"):
            return True
    return False


def kernels_in(tree: ast.Module) -> list[tuple[str, ast.FunctionDef]]:
    """Every kernel of a module with its qualified name, those in classes and under conditions included."""
    found: list[tuple[str, ast.FunctionDef]] = []
    _collect(tree.body, "", found)
    return found


def _collect(body: list[ast.stmt], prefix: str, found: list[tuple[str, ast.FunctionDef]]) -> None:
    for stmt in body:
        if isinstance(stmt, ast.FunctionDef):
            if is_kernel(stmt):
                found.append((prefix + stmt.name, stmt))
        elif isinstance(stmt, ast.ClassDef):
            _collect(stmt.body, f"{prefix}{stmt.name}.", found)
        elif isinstance(stmt, (ast.If, ast.Try, ast.With)):
            for part in (stmt.body, getattr(stmt, "orelse", []), getattr(stmt, "finalbody", [])):
                _collect(part, prefix, found)
            for handler in getattr(stmt, "handlers", []):
                _collect(handler.body, prefix, found)


def sources(tree: ast.Module, lines: list[str]) -> tuple[tuple[KernelSource, ...], str]:
    """The kernels of a module, and a text that holds just them, each on its own lines (the whole module when one stands in a block)."""
    found = kernels_in(tree)
    if not found:
        return (), ""
    kernels = tuple(
        KernelSource(
            name,
            tuple(arg.arg for arg in parameters(node)),
            *accessed(node),
            Span(node.lineno, node.col_offset + 1, node.end_lineno or node.lineno, (node.end_col_offset or 0) + 1),
        )
        for name, node in found
    )
    if any(node.col_offset for _, node in found):
        return kernels, "\n".join(lines)
    kept = [""] * len(lines)
    for _, node in found:
        first, last = min([node.lineno, *(part.lineno for part in node.decorator_list)]) - 1, node.end_lineno or node.lineno
        kept[first:last] = lines[first:last]
    return kernels, "\n".join(kept)


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    """All parameters in order."""
    args = node.args
    return [*args.posonlyargs, *args.args, *([args.vararg] if args.vararg else []), *args.kwonlyargs, *([args.kwarg] if args.kwarg else [])]


def accessed(node: ast.FunctionDef) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parameters that it may load from or store to, and those it may store to: more than it does, for names are followed, not values."""
    flow = _Flow()
    flow.block(node.body)
    names = [arg.arg for arg in parameters(node)]
    reached, stored = flow.closure(flow.loaded | flow.stored), flow.closure(flow.stored)
    return tuple(name for name in names if name in reached), tuple(name for name in names if name in stored)


class _Flow:
    """Which pointers a local name was made of, and the names in addresses."""

    def __init__(self) -> None:
        self.origins: dict[str, set[str]] = {}
        self.stored: set[str] = set()
        self.loaded: set[str] = set()

    def closure(self, names: set[str]) -> set[str]:
        """`names` and all that they were made of."""
        reached = set(names)
        stack = list(reached)
        while stack:
            for name in self.origins.get(stack.pop(), ()):
                if name not in reached:
                    reached.add(name)
                    stack.append(name)
        return reached

    def block(self, body: list[ast.stmt]) -> None:
        for stmt in body:
            if isinstance(stmt, ast.Assign):
                self._accesses(stmt.value)
                names = _pointers(stmt.value)
                for target in stmt.targets:
                    self._bind(target, names)
            elif isinstance(stmt, ast.Expr):
                self._accesses(stmt.value)
            elif isinstance(stmt, (ast.AugAssign, ast.AnnAssign)):
                if stmt.value is not None:
                    self._accesses(stmt.value)
                    self._bind(stmt.target, _pointers(stmt.value))
            elif isinstance(stmt, ast.For):
                self._accesses(stmt.iter)
                self._bind(stmt.target, _pointers(stmt.iter))
                self.block(stmt.body)
                self.block(stmt.orelse)
            elif isinstance(stmt, (ast.If, ast.While)):
                self._accesses(stmt.test)
                self.block(stmt.body)
                self.block(stmt.orelse)
            elif isinstance(stmt, ast.With):
                self.block(stmt.body)
            elif isinstance(stmt, ast.Return) and stmt.value is not None:
                self._accesses(stmt.value)

    def _bind(self, target: ast.expr, names: set[str]) -> None:
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(part, ast.Name) and names:
                self.origins.setdefault(part.id, set()).update(names)

    def _accesses(self, node: ast.expr) -> None:
        """Notes the loads and stores in an expression."""
        stack: list[ast.AST] = [node]
        while stack:
            part = stack.pop()
            kind = type(part)
            # names, sums and calls are nearly all that kernels consist of: spelled out, `ast.walk` is several times slower
            if kind is ast.Name or kind is ast.Constant:
                continue
            if kind is ast.BinOp:
                stack.append(part.left)  # type: ignore[attr-defined]
                stack.append(part.right)  # type: ignore[attr-defined]
            elif kind is ast.Call:
                load, addresses = _addresses(part)  # type: ignore[arg-type]
                for address in addresses:
                    (self.loaded if load else self.stored).update(_pointers(address))
                stack.append(part.func)  # type: ignore[attr-defined]
                stack.extend(part.args)  # type: ignore[attr-defined]
                stack.extend(keyword.value for keyword in part.keywords)  # type: ignore[attr-defined]
            elif kind is ast.Attribute:
                stack.append(part.value)  # type: ignore[attr-defined]
            else:
                stack.extend(ast.iter_child_nodes(part))


def _pointers(node: ast.expr) -> set[str]:
    """Names that the pointer `node` may come from: what is multiplied, divided or compared is no pointer."""
    found: set[str] = set()
    stack: list[ast.expr] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.BinOp):
            if isinstance(part.op, (ast.Add, ast.Sub)):
                stack.append(part.left)
                stack.append(part.right)
        elif isinstance(part, ast.Call):
            func = part.func
            if isinstance(func, ast.Attribute):
                stack.append(func.value)
            first = part.args[:1] if isinstance(func, ast.Attribute) and _root(func) in _LANGUAGE else part.args
            stack.extend(first)
            stack.extend(keyword.value for keyword in part.keywords if keyword.arg in ("base", "pointer", "input") or first is part.args)
        elif isinstance(part, ast.IfExp):
            stack.append(part.body)
            stack.append(part.orelse)
        elif isinstance(part, (ast.Tuple, ast.List)):
            stack.extend(part.elts)
        elif isinstance(part, (ast.Attribute, ast.Subscript, ast.Starred, ast.NamedExpr)):
            stack.append(part.value)
    return found


def _addresses(call: ast.Call) -> tuple[bool, list[ast.expr]]:
    """Arguments of `call` that it loads from (True) or may store to (False)."""
    func = call.func
    name = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    known = isinstance(func, ast.Attribute) and _root(func) in _LANGUAGE
    if name.startswith(("load", "store", "atomic_")):
        first = call.args[:1] or [keyword.value for keyword in call.keywords if keyword.arg == "pointer"]
        return name.startswith("load"), first if known else [*first, func]
    if known and name not in ("inline_asm_elementwise", "map_elementwise"):
        return True, []
    if isinstance(func, ast.Name) and func.id in _BUILTIN:
        return True, []
    if isinstance(func, ast.Attribute) and (not isinstance(func.value, ast.Name) or not call.args):
        return True, []  # a method of a value: `x.to(...)`, `(a + b).reshape(...)`
    return False, [*call.args, *(keyword.value for keyword in call.keywords)]
