"""How a kernel uses its pointer parameters: loaded, stored, dereferenced as a table of pointers, used as an index."""

from __future__ import annotations

import ast
from typing import NamedTuple

import msgspec

from graphlint.validate.extract import Kernel

_DTYPES = {
    "int1": "bool",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint32": "int32",
    "uint64": "int64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float64": "float64",
}
_LOADS = frozenset({"load"})
_STORES = frozenset({"store"})
_FLOAT_CALLS = frozenset({"dot", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sigmoid", "softmax", "tanh", "erf", "cos", "sin"})
_FLOAT_TYPES = frozenset({"float32", "float16", "bfloat16", "float64"})
#: calls whose result is an address when an argument is
_KEEP_ADDRESS = frozenset(
    {"multiple_of", "max_contiguous", "max_constancy", "where", "to", "cast", "broadcast_to", "expand_dims", "reshape"}
)


class Use(msgspec.Struct):
    """Uses of one pointer. The inner pointers of a table `p` have a Use of their own under the name `p[]`."""

    loads: int = 0
    stores: int = 0
    #: what is loaded becomes part of an address
    indexes: bool = False
    #: loaded at i and at i + 1
    pairs: bool = False
    #: what is loaded bounds a loop or a mask
    bounds: bool = False
    #: what is loaded goes through arithmetic that only floats have
    floats: bool = False
    #: dtype of the inner pointers when the loaded value is cast to one
    inner: str = ""


class Uses(msgspec.Struct):
    """All uses in one kernel, and what its program ids are called."""

    pointers: dict[str, Use]
    #: local name or helper parameter -> parameters of the kernel whose address it holds
    aliases: dict[str, list[str]]
    #: axis -> names given to tl.program_id(axis)
    axes: dict[int, list[str]]
    #: axes whose last program is told apart by num_programs(axis) - 1
    extra: list[int]


class _Value(NamedTuple):
    roots: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()


_EMPTY = _Value()


def _join(values: list[_Value]) -> _Value:
    return _Value(frozenset().union(*(value.roots for value in values)), frozenset().union(*(value.loaded for value in values)))


class _Reader:
    def __init__(self, kernel: Kernel) -> None:
        tree = ast.parse(kernel.module)
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.uses: dict[str, Use] = {}
        self.aliases: dict[str, set[str]] = {}
        self.axes: dict[int, list[str]] = {}
        self.loaded_at: dict[str, set[str]] = {}
        self.extra: set[int] = set()

    def use(self, name: str) -> Use:
        return self.uses.setdefault(name, Use())

    def function(self, node: ast.FunctionDef, env: dict[str, _Value], types: dict[str, ast.expr], depth: int = 0) -> _Value:
        returned: list[_Value] = []
        for _ in range(2):  # twice: a loop's later lines feed its earlier ones
            returned = []
            for statement in node.body:
                self._statement(statement, env, types, depth, returned)
        return _join(returned)

    def _statement(self, node: ast.stmt, env: dict[str, _Value], types: dict[str, ast.expr], depth: int, returned: list[_Value]) -> None:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            if node.value is None:
                return
            value = self._value(node.value, env, types, depth)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._assign(target, value, env, isinstance(node, ast.AugAssign))
                if isinstance(target, ast.Name):
                    self._axis(target.id, node.value)
            return
        if isinstance(node, ast.Return):
            returned.append(self._value(node.value, env, types, depth) if node.value else _EMPTY)
            return
        if isinstance(node, ast.For):
            bound = self._value(node.iter, env, types, depth)
            for name in bound.loaded:
                self.use(name).bounds = True
            self._assign(node.target, _Value(frozenset(), bound.loaded), env, False)
        for field in ("test", "value", "msg"):
            part = getattr(node, field, None)
            if isinstance(part, ast.expr):
                self._value(part, env, types, depth)
        for field in ("body", "orelse"):
            for inner in getattr(node, field, []):
                self._statement(inner, env, types, depth, returned)

    def _assign(self, target: ast.expr, value: _Value, env: dict[str, _Value], add: bool) -> None:
        if isinstance(target, ast.Name):
            env[target.id] = _join([env.get(target.id, _EMPTY), value])
            if env[target.id].roots:
                self.aliases.setdefault(target.id, set()).update(env[target.id].roots)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for inner in target.elts:
                self._assign(inner, value, env, add)

    def _axis(self, name: str, value: ast.expr) -> None:
        for inner in ast.walk(value):
            if isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith("program_id"):
                axis = _axis_number(inner)
                if name not in self.axes.setdefault(axis, []):
                    self.axes[axis].append(name)

    def _value(self, node: ast.expr, env: dict[str, _Value], types: dict[str, ast.expr], depth: int) -> _Value:
        if isinstance(node, ast.Name):
            return env.get(node.id, _EMPTY)
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Sub) and ast.unparse(node.left).find("num_programs(") >= 0 and ast.unparse(node.right) == "1":
                self.extra.update(
                    _axis_number(call)
                    for call in ast.walk(node.left)
                    if isinstance(call, ast.Call) and "num_programs" in ast.unparse(call.func)
                )
            left, right = self._value(node.left, env, types, depth), self._value(node.right, env, types, depth)
            loaded = left.loaded | right.loaded
            if not isinstance(node.op, (ast.Add, ast.Sub)):
                return _Value(frozenset(), loaded)  # no arithmetic on addresses but these two
            base, rest = (left, right) if left.roots else (right, left)
            if base.roots:
                # the base is the leftmost operand that can be one; scalars to its right are offsets
                for name in rest.loaded:
                    self.use(name).indexes = True
                return _Value(base.roots, base.loaded)
            return _Value(frozenset(), loaded)
        if isinstance(node, ast.Compare):
            value = _join([self._value(part, env, types, depth) for part in [node.left, *node.comparators]])
            for name in value.loaded:
                self.use(name).bounds = True
            return value
        if isinstance(node, ast.Call):
            return self._call(node, env, types, depth)
        if isinstance(node, (ast.Attribute, ast.Constant)):
            return self._value(node.value, env, types, depth) if isinstance(node, ast.Attribute) else _EMPTY
        return _join([self._value(child, env, types, depth) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)])

    def _call(self, node: ast.Call, env: dict[str, _Value], types: dict[str, ast.expr], depth: int) -> _Value:
        func = ast.unparse(node.func)
        last = func.rsplit(".", 1)[-1]
        arguments = [*node.args, *[keyword.value for keyword in node.keywords]]
        named = {keyword.arg: keyword.value for keyword in node.keywords}
        if last in _LOADS or last in _STORES or last.startswith("atomic_"):
            address = node.args[0] if node.args else named.get("pointer", ast.Constant(0))
            pointer = self._value(address, env, types, depth)
            for rest in arguments:
                if rest is not address:
                    self._value(rest, env, types, depth)
            for name in pointer.roots:
                use = self.use(name)
                use.loads += last not in _STORES
                use.stores += last not in _LOADS
                if last in _LOADS:
                    self._pair(name, ast.unparse(address))
            return _Value(frozenset(), pointer.roots) if last not in _STORES else _EMPTY
        inner = next(
            (
                part
                for part in arguments
                for call in ast.walk(part)
                if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("pointer_type")
            ),
            None,
        )
        if inner is not None:
            source = _join([self._value(part, env, types, depth) for part in [node.func, *arguments] if part is not inner])
            dtype = self._dtype(inner, types)
            for name in source.loaded:
                self.use(name).inner = dtype
            return _Value(frozenset(f"{name}[]" for name in source.loaded), frozenset())
        values = [self._value(part, env, types, depth) for part in arguments]
        if isinstance(node.func, ast.Attribute):
            values.append(self._value(node.func.value, env, types, depth))
        if last in _FLOAT_CALLS or (last == "to" and any(ast.unparse(part).rsplit(".", 1)[-1] in _FLOAT_TYPES for part in arguments)):
            for name in _join(values).loaded:
                self.use(name).floats = True
        helper = self.functions.get(func)
        if helper is not None and depth < 5:
            parameters = [argument.arg for argument in [*helper.args.args, *helper.args.kwonlyargs]]
            bound = dict(zip(parameters, node.args, strict=False)) | {key: value for key, value in named.items() if key}
            inner_env = {name: self._value(value, env, types, depth) for name, value in bound.items()}
            for name, value in inner_env.items():
                if value.roots:
                    self.aliases.setdefault(name, set()).update(value.roots)
            inner_types = {name: types.get(ast.unparse(value), value) for name, value in bound.items()}
            return self.function(helper, inner_env, inner_types, depth + 1)
        joined = _join(values)
        return joined if last in _KEEP_ADDRESS else _Value(frozenset(), joined.loaded)

    def _pair(self, name: str, address: str) -> None:
        seen = self.loaded_at.setdefault(name, set())
        seen.add(address)
        if f"{address} + 1" in seen or (address.endswith(" + 1") and address[:-4] in seen):
            self.use(name).pairs = True

    def _dtype(self, node: ast.expr, types: dict[str, ast.expr]) -> str:
        for call in ast.walk(node):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("pointer_type") and call.args:
                wanted = types.get(ast.unparse(call.args[0]), call.args[0])
                return _DTYPES.get(ast.unparse(wanted).rsplit(".", 1)[-1], "int32")
        return "int32"


def _axis_number(call: ast.Call) -> int:
    argument = call.args[0] if call.args else next((keyword.value for keyword in call.keywords if keyword.arg == "axis"), None)
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, int) else 0


def read(kernel: Kernel) -> Uses:
    """Reads the kernel and its helpers once. Never fails: what it does not understand is missing from the result."""
    reader = _Reader(kernel)
    env = {name: _Value(frozenset({name})) for name in kernel.params if name not in kernel.constexprs}
    reader.function(reader.functions[kernel.name], env, {})
    # a parameter whose address is never loaded from or stored to is a scalar
    pointers = {name: use for name, use in reader.uses.items() if use.loads or use.stores}
    aliases = {name: sorted(roots & pointers.keys()) for name, roots in reader.aliases.items() if roots & pointers.keys()}
    return Uses(pointers=pointers, aliases=aliases, axes=reader.axes, extra=sorted(reader.extra))
