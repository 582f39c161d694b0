"""How host code launches a kernel: grid, arguments, constexpr values, as expressions over the extents of a batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import msgspec

from graphlint.validate.extract import Sources, module_candidates
from graphlint.validate.roles import count_of, scalar

_OPTIONS = frozenset(
    {"num_warps", "num_stages", "num_ctas", "maxnreg", "launch_pdl", "enable_fp_fusion", "waves_per_eu", "matrix_instr_nonkdim", "kpack"}
)


#: a test that the launch decides, such as `x is not None`: both outcomes are real
FLAG = "flag"


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One `kernel[grid](...)`. `arguments`: parameter -> host text; `values`: parameter -> expression, for scalars that are understood."""

    path: str
    line: int
    function: str
    grid: list[str]
    arguments: dict[str, str]
    values: dict[str, str]


class _Host:
    """Resolves host expressions inside the function that launches."""

    def __init__(
        self,
        function: ast.FunctionDef | None,
        module: ast.Module,
        arguments: dict[str, ast.expr],
        siblings: frozenset[str],
        file: str,
        sources: Sources,
    ) -> None:
        self.arguments, self.siblings, self.path, self.sources = arguments, siblings, file, sources
        self.assigned: dict[str, ast.expr] = {}
        self.module: dict[str, ast.expr] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in module.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.module.setdefault(node.targets[0].id, node.value)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self.imports.setdefault(alias.asname or alias.name, ("." * node.level + (node.module or ""), alias.name))
        for inner in ast.walk(function) if function else ():
            if isinstance(inner, ast.Assign) and len(inner.targets) == 1:
                target, value = inner.targets[0], inner.value
                if isinstance(target, ast.Name):
                    self.assigned.setdefault(target.id, value)
                elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                    for name, part in zip(target.elts, value.elts, strict=True):
                        if isinstance(name, ast.Name):
                            self.assigned.setdefault(name.id, part)
                elif isinstance(target, ast.Tuple) and isinstance(value, ast.Attribute) and value.attr == "shape":
                    for number, name in enumerate(target.elts):
                        if isinstance(name, ast.Name):
                            self.assigned.setdefault(name.id, ast.Subscript(value=value, slice=ast.Constant(number), ctx=ast.Load()))

    def expression(self, node: ast.expr, depth: int = 0) -> str | None:
        """`node` over the extents, or None where it is not understood."""
        if depth > 12:
            return None
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node, depth)
        if isinstance(node, ast.BinOp):
            left, right = self.expression(node.left, depth + 1), self.expression(node.right, depth + 1)
            if left is None or right is None:
                return None
            return ast.unparse(ast.BinOp(left=ast.parse(left, mode="eval").body, op=node.op, right=ast.parse(right, mode="eval").body))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            value = self.expression(node.operand, depth + 1)
            return None if value is None else f"({'-' if isinstance(node.op, ast.USub) else 'not '}{value})"
        if isinstance(node, ast.IfExp):
            return self.expression(node.body, depth + 1) or self.expression(node.orelse, depth + 1)
        if isinstance(node, ast.BoolOp):
            return self.expression(node.values[0], depth + 1)
        if isinstance(node, ast.Compare):
            return FLAG if isinstance(node.ops[0], (ast.Is, ast.IsNot)) else None
        if isinstance(node, ast.Subscript):
            return self._subscript(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        return None

    def _name(self, node: ast.Name | ast.Attribute, depth: int) -> str | None:
        short = node.id if isinstance(node, ast.Name) else node.attr
        extent = count_of(short, self.siblings)
        if extent is not None:
            return extent
        if isinstance(node, ast.Name):
            for table in (self.assigned, self.module):
                if short in table:
                    value = self.expression(table[short], depth + 1)
                    if value is not None:
                        return value
            if short in self.imports:
                return self._imported(*self.imports[short], depth)
        return scalar(short, self.siblings) if not short.isupper() else None

    def _imported(self, module: str, name: str, depth: int) -> str | None:
        for candidate in module_candidates(module, self.path):
            text = self.sources(candidate)
            if text is None:
                continue
            try:
                tree = ast.parse(text)
            except SyntaxError:
                return None
            for node in tree.body:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name:
                    return self.expression(node.value, depth + 1)
                if (
                    isinstance(node, ast.AnnAssign)
                    and isinstance(node.target, ast.Name)
                    and node.target.id == name
                    and node.value is not None
                ):
                    return self.expression(node.value, depth + 1)
        return None

    def _subscript(self, node: ast.Subscript, depth: int) -> str | None:
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and isinstance(node.slice, ast.Constant):
            return self._dimension(node.value.value, node.slice.value)
        if isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return f"_{node.slice.value}"  # META["BLOCK"] of a grid lambda: filled from the constexprs
        return None

    def _dimension(self, tensor: ast.expr, number: object) -> str | None:
        name = ast.unparse(tensor).rsplit(".", 1)[-1]
        if not isinstance(number, int):
            return None
        if number > 0 or number < -1:
            return "row"
        if "token" in name or "position" in name or "hidden" in name or name.startswith("src_"):
            return "live_tokens"
        return "cap_reqs" if any(ast.unparse(argument).rsplit(".", 1)[-1] == name for argument in self.arguments.values()) else "live_reqs"

    def _call(self, node: ast.Call, depth: int) -> str | None:
        func = ast.unparse(node.func)
        last = func.rsplit(".", 1)[-1]
        if last == "stride" and isinstance(node.func, ast.Attribute):
            return "row" if not node.args or ast.unparse(node.args[0]) == "0" else "1"
        if last == "size" and isinstance(node.func, ast.Attribute) and node.args and isinstance(node.args[0], ast.Constant):
            return self._dimension(node.func.value, node.args[0].value)
        if last == "numel" and isinstance(node.func, ast.Attribute):
            return "live_tokens * 16" if "hidden" in func else "live_tokens"
        if last == "len" and node.args:
            return self._dimension(node.args[0], 0)
        if last in ("cdiv", "next_power_of_2", "min", "max", "int") and node.args and not node.keywords:
            parts = [self.expression(argument, depth + 1) for argument in node.args]
            if None not in parts:
                return f"{last}({', '.join(str(part) for part in parts)})"
        return None


def _functions(tree: ast.AST, inside: ast.FunctionDef | None = None) -> Iterator[tuple[ast.AST, ast.FunctionDef | None]]:
    for child in ast.iter_child_nodes(tree):
        owner = child if isinstance(child, ast.FunctionDef) else inside
        yield child, inside
        yield from _functions(child, owner)


def find(path: str, kernel: str, params: list[str], sources: Sources, autotune: dict[str, str] | None = None) -> Launch | None:
    """The first launch of `kernel` in the file at `path`, or None. `autotune`: constexpr values a configuration sets."""
    text = sources(path)
    if text is None or f"{kernel}[" not in text.replace(" ", ""):
        return None
    try:
        module = ast.parse(text)
    except SyntaxError:
        return None
    for node, function in _functions(module):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Subscript)
            and ast.unparse(node.func.value).rsplit(".", 1)[-1] == kernel
        ):
            return _launch(node, function, module, params, path, sources, autotune or {})
    return None


def _launch(
    node: ast.Call,
    function: ast.FunctionDef | None,
    module: ast.Module,
    params: list[str],
    path: str,
    sources: Sources,
    autotune: dict[str, str],
) -> Launch:
    assert isinstance(node.func, ast.Subscript)
    plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    bound = dict(zip(params, plain, strict=False)) if len(plain) == len(node.args) else {}
    bound |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg and keyword.arg not in _OPTIONS}
    names = frozenset(params) | frozenset(ast.unparse(value).rsplit(".", 1)[-1] for value in bound.values())
    host = _Host(function, module, bound, names, path, sources)
    strides: dict[str, int] = {}
    for value in bound.values():
        if (axis := _stride_axis(value)) is not None:
            tensor = ast.unparse(value)
            strides[tensor.rpartition("(")[0]] = max(strides.get(tensor.rpartition("(")[0], 0), axis)
    values = {}
    for name, value in bound.items():
        axis = _stride_axis(value)
        text = host.expression(value) if axis is None else _stride(axis, strides[ast.unparse(value).rpartition("(")[0]])
        if text is not None:
            values[name] = text
    constants = {f"_{name}": values.get(name) or autotune.get(name) or "64" for name in params if name.isupper()}
    grid_node: ast.expr = node.func.slice
    for _ in range(3):
        if isinstance(grid_node, ast.Name) and grid_node.id in host.assigned:
            grid_node = host.assigned[grid_node.id]
        if isinstance(grid_node, ast.Lambda):
            grid_node = grid_node.body
    axes = list(grid_node.elts) if isinstance(grid_node, (ast.Tuple, ast.List)) else [grid_node]
    grid = []
    for axis_node in axes:
        axis_text = host.expression(axis_node) or "1"
        for name, constant in constants.items():
            axis_text = axis_text.replace(name, f"({constant})")
        grid.append(axis_text)
    return Launch(
        path=path,
        line=node.lineno,
        function=function.name if function else "",
        grid=grid,
        arguments={name: ast.unparse(value) for name, value in bound.items()},
        values=values,
    )


def _stride_axis(node: ast.expr) -> int | None:
    """The axis of `tensor.stride(axis)` with a number for it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stride" and len(node.args) == 1:
        axis = node.args[0]
        return axis.value if isinstance(axis, ast.Constant) and isinstance(axis.value, int) else None
    return None


def _stride(axis: int, last: int) -> str:
    """Strides of a contiguous tensor whose lanes are `row` elements: row, then parts of it, the last 1 unless it is the only one."""
    if axis == 0:
        return "row"
    return "1" if axis >= last else f"row // {4**axis}"
