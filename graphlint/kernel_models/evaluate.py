"""Expressions of a Triton kernel: Python operators and the functions of triton.language."""

from __future__ import annotations

import ast
from collections.abc import Callable

from graphlint.facts.expr import NONE, ONE, UNKNOWN, ZERO, Expr
from graphlint.kernel_models import scan
from graphlint.kernel_models.accesses import Recorder
from graphlint.kernel_models.conditions import conjuncts, negate
from graphlint.kernel_models.linear import canonical, fold, rebuild, size
from graphlint.kernel_models.state import State

#: A value of more parts than this is kept as an opaque local: its text would help nobody, and the cost stays bounded.
MAX_SIZE = 160
#: Statements and calls interpreted for one kernel, helpers included.
MAX_STEPS = 6000

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.BitAnd: "&",
    ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
}
_COMPARES: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is", ast.IsNot: "isnot",
    ast.In: "in", ast.NotIn: "notin",
}
#: Names under which kernels reach triton.language and pure device libraries.
LANGUAGE = ("tl", "triton", "language", "libdevice", "tldevice", "math", "tle", "gl", "ttgl")
#: Functions that return their first argument, possibly in another type, layout or shape.
_SAME = {
    "cast", "to", "multiple_of", "max_contiguous", "max_constancy", "broadcast_to", "reshape", "view", "ravel", "trans", "permute",
    "to_tensor", "constexpr", "flip", "int", "advance", "contiguous",
}
_BUILTINS = {"min", "max", "range", "int", "float", "bool", "abs", "len"}
_ATOMICS = ("atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg", "atomic_cas")
_SILENT = {
    "static_assert", "static_print", "device_print", "device_assert", "debug_barrier", "assume", "print", "gdc_wait",
    "gdc_launch_dependents",
}


class TooLarge(Exception):
    """The kernel needs more steps than the model spends."""


class Evaluator:
    """Expression part of the interpreter."""

    def __init__(self, qualname: str, lines: list[str], recorder: Recorder) -> None:
        self.qualname = qualname
        self.lines = lines
        self.recorder = recorder
        self.steps = 0

    def inline(self, name: str, node: ast.Call, args: list[Expr], kwargs: dict[str, Expr], state: State) -> Expr | None:
        """Overridden by the interpreter."""
        raise NotImplementedError

    def spend(self, node: ast.AST) -> None:
        """Counts one step."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooLarge(f"more than {MAX_STEPS} steps at line {getattr(node, 'lineno', 0)}")

    def note(self, what: str, node: ast.AST) -> None:
        """Remembers what was not understood."""
        self.recorder.note(f"line {getattr(node, 'lineno', 0)}: {what}")

    def bounded(self, name: str, value: Expr) -> Expr:
        """`value`, or an opaque local when it is too large to carry on."""
        return value if size(value) <= MAX_SIZE else self.recorder.opaque(name, value)

    @staticmethod
    def operator(node: ast.operator) -> str:
        """Text of an operator."""
        return _OPERATORS.get(type(node), "?")

    def eval(self, node: ast.expr, state: State) -> Expr:
        """Value of an expression."""
        method: Callable[[ast.expr, State], Expr] | None = getattr(self, f"_eval_{type(node).__name__.lower()}", None)
        if method is None:
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr):
                    self.eval(part, state)
            return UNKNOWN
        return method(node, state)

    def _eval_constant(self, node: ast.Constant, state: State) -> Expr:
        value = node.value
        return ("const", value) if value is None or isinstance(value, (bool, int, float, str)) else UNKNOWN

    def _eval_name(self, node: ast.Name, state: State) -> Expr:
        return state.env.get(node.id) or ("global", node.id)

    def _eval_attribute(self, node: ast.Attribute, state: State) -> Expr:
        return ("attr", self.eval(node.value, state), node.attr)

    def _eval_tuple(self, node: ast.Tuple, state: State) -> Expr:
        return ("tuple", *(self.eval(part, state) for part in node.elts))

    def _eval_list(self, node: ast.List, state: State) -> Expr:
        return ("list", *(self.eval(part, state) for part in node.elts))

    def _eval_starred(self, node: ast.Starred, state: State) -> Expr:
        return ("star", self.eval(node.value, state))

    def _eval_binop(self, node: ast.BinOp, state: State) -> Expr:
        return self.binary(self.operator(node.op), self.eval(node.left, state), self.eval(node.right, state))

    def binary(self, op: str, a: Expr, b: Expr) -> Expr:
        """a op b."""
        if a[0] == "const" and b[0] == "const" and type(a[1]) is int and type(b[1]) is int:
            x, y = a[1], b[1]
            if op in "+-*" and abs(x) < 1 << 40 and abs(y) < 1 << 20:
                return ("const", x + y if op == "+" else x - y if op == "-" else x * y)
            if op in ("//", "%") and y > 0:
                return ("const", x // y if op == "//" else x % y)
        if (op in ("//", "*") and b == ONE) or (op in ("+", "-") and b == ZERO):
            return a
        return self.bounded("value", ("bin", op, a, b))

    def _eval_unaryop(self, node: ast.UnaryOp, state: State) -> Expr:
        value = self.eval(node.operand, state)
        if isinstance(node.op, ast.USub):
            return ("const", -value[1]) if value[0] == "const" and type(value[1]) in (int, float) else ("un", "-", value)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Not) and value[0] == "const":
            return ("const", not value[1])
        return ("un", "not" if isinstance(node.op, ast.Not) else "~", value)

    def _eval_boolop(self, node: ast.BoolOp, state: State) -> Expr:
        return ("and" if isinstance(node.op, ast.And) else "or", *(self.eval(part, state) for part in node.values))

    def _eval_compare(self, node: ast.Compare, state: State) -> Expr:
        left = self.eval(node.left, state)
        parts: list[Expr] = []
        for op, right_node in zip(node.ops, node.comparators, strict=False):
            right = self.eval(right_node, state)
            parts.append(_decide(("cmp", _COMPARES[type(op)], left, right)))
            left = right
        return parts[0] if len(parts) == 1 else ("and", *parts)

    def _eval_ifexp(self, node: ast.IfExp, state: State) -> Expr:
        test = self.eval(node.test, state)
        if test[0] == "const":
            return self.eval(node.body if test[1] else node.orelse, state)
        then, other = state.fork(conjuncts(test)), state.fork(conjuncts(negate(test)))
        return ("if", test, self.eval(node.body, then), self.eval(node.orelse, other))

    def _eval_subscript(self, node: ast.Subscript, state: State) -> Expr:
        value = self.eval(node.value, state)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if value[0] in ("tuple", "list") and len(parts) == 1:
            index = self.eval(parts[0], state)
            if index[0] == "const" and isinstance(index[1], int) and -len(value) < index[1] < len(value) - 1:
                part: Expr = value[1:][index[1]]
                return part
            return UNKNOWN
        dims = tuple(("slice", NONE, NONE, NONE) if isinstance(part, ast.Slice) else self.eval(part, state) for part in parts)
        if all(dim == NONE or dim[0] == "slice" for dim in dims):
            return self.bounded("value", _spread(value, dims))
        return ("index", value, *dims)

    def loop_range(self, node: ast.expr, state: State) -> tuple[Expr, Expr, Expr] | None:
        """(lo, hi, step) of `range`, `tl.range` or `tl.static_range`, or None."""
        if not isinstance(node, ast.Call) or _last(node.func) not in ("range", "static_range"):
            self.eval(node, state)
            return None
        args = [self.eval(arg, state) for arg in node.args]
        named = {word.arg: self.eval(word.value, state) for word in node.keywords if word.arg}
        args.extend(named[key] for key in ("arg1", "arg2", "step") if key in named)
        if not 1 <= len(args) <= 3:
            return None
        if len(args) == 1:
            return ZERO, canonical(args[0]), ONE
        return canonical(args[0]), canonical(args[1]), canonical(args[2]) if len(args) == 3 else ONE

    # ---- calls

    def _eval_call(self, node: ast.Call, state: State) -> Expr:
        self.spend(node)
        name = _last(node.func)
        receiver = self._receiver(node.func, state)
        args = [self.eval(arg, state) for arg in node.args]
        kwargs = {word.arg: self.eval(word.value, state) for word in node.keywords if word.arg}
        if receiver is not None and name in ("load", "store"):
            self.recorder.block(receiver, name, args, state, scan.span(node, self.lines))
            return self.recorder.fresh("tile")
        if receiver is not None:
            return self._method(name, receiver, args, kwargs, state)
        if (isinstance(node.func, ast.Name) and name not in state.env) or not _language(node.func):
            known = self.inline(name, node, args, kwargs, state)
            if known is not None:
                return known
        if _language(node.func) or (isinstance(node.func, ast.Name) and name in _BUILTINS):
            return self._builtin(name, node, args, kwargs, state)
        if name in ("cdiv", "cdiv_fn") and len(args) == 2:
            return ("call", ("global", "cdiv"), tuple(args), (), 0)
        if name in _SILENT:
            return NONE
        self.recorder.escape([*args, *kwargs.values()], name)
        return self.recorder.computed([*args, *kwargs.values()], name)

    def _receiver(self, func: ast.expr, state: State) -> Expr | None:
        """The value whose method is called (`x.to(...)`), or None for a function of a module."""
        if not isinstance(func, ast.Attribute) or _language(func):
            return None
        value = self.eval(func.value, state)
        return None if value[0] in ("global", "attr") else value

    def _method(self, name: str, value: Expr, args: list[Expr], kwargs: dict[str, Expr], state: State) -> Expr:
        if name in _SAME or name in ("trans", "T"):
            return value
        return self.bounded("value", ("call", ("attr", ("global", "tl"), name), (value, *args), tuple(kwargs.items()), 0))

    def _builtin(self, name: str, node: ast.Call, args: list[Expr], kwargs: dict[str, Expr], state: State) -> Expr:
        def arg(index: int, key: str, default: Expr = NONE) -> Expr:
            return args[index] if index < len(args) else kwargs.get(key, default)

        if name in ("program_id", "num_programs"):
            axis = arg(0, "axis", ZERO)
            if axis[0] == "const" and isinstance(axis[1], int):
                return ("pid" if name == "program_id" else "nprog", axis[1])
            return self.recorder.fresh(name)
        if name == "arange":
            return ("arange", canonical(arg(0, "start", ZERO)), canonical(arg(1, "end", ZERO)))
        at = scan.span(node, self.lines)
        if name == "load":
            return self.recorder.load(arg(0, "pointer", UNKNOWN), arg(1, "mask"), arg(2, "other"), state, at)
        if name == "store":
            self.recorder.store(arg(0, "pointer", UNKNOWN), arg(1, "value", UNKNOWN), arg(2, "mask"), state, at, "store")
            return NONE
        if name in _ATOMICS:
            value, mask = (2, 3) if name == "atomic_cas" else (1, 2)
            self.recorder.store(arg(0, "pointer", UNKNOWN), arg(value, "val", UNKNOWN), arg(mask, "mask"), state, at, "atomic")
            return self.recorder.fresh("old")
        if name == "where" and len(args) + len(kwargs) == 3:
            test = arg(0, "condition")
            return self.bounded("value", fold(("if", test, arg(1, "x"), arg(2, "y"))))
        if name in ("minimum", "maximum") or (name in ("min", "max") and len(args) >= 2 and isinstance(node.func, ast.Name)):
            return self.bounded("value", ("call", ("global", name[:3]), tuple(args or kwargs.values()), (), 0))
        if name in ("zeros", "zeros_like"):
            return ZERO
        if name in ("full", "full_like"):
            return arg(1, "value", UNKNOWN)
        if name == "cdiv":
            return ("call", ("global", "cdiv"), tuple(args), (), 0)
        if name in ("make_block_ptr", "make_tensor_descriptor"):
            return ("call", ("attr", ("global", "tl"), "block_ptr"), (arg(0, "base", UNKNOWN),), (), 0)
        if name == "expand_dims" and arg(1, "axis")[0] == "const" and arg(1, "axis")[1] in (0, 1, -1):
            whole: Expr = ("slice", NONE, NONE, NONE)
            return _spread(arg(0, "input", UNKNOWN), (NONE, whole) if arg(1, "axis") == ZERO else (whole, NONE))
        if name in _SAME:
            return arg(0, "input", UNKNOWN)
        if name == "broadcast":
            return ("tuple", *args)
        if name in _SILENT:
            return NONE
        return self.bounded("value", ("call", ("attr", ("global", "tl"), name), tuple(args), tuple(kwargs.items()), 0))


def _last(func: ast.expr) -> str:
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def _language(func: ast.expr) -> bool:
    """Whether a called name is reached through triton.language or a pure device library."""
    if not isinstance(func, ast.Attribute):
        return False
    root = func.value
    while isinstance(root, ast.Attribute):
        root = root.value
    return isinstance(root, ast.Name) and root.id in LANGUAGE


def _decide(cond: Expr) -> Expr:
    a, b = cond[2], cond[3]
    if a == NONE and b == NONE and cond[1] in ("is", "isnot"):
        return ("const", cond[1] == "is")
    if a[0] == "const" and b == NONE and cond[1] in ("is", "isnot"):
        return ("const", cond[1] == "isnot")
    return fold(cond)


def _spread(expr: Expr, dims: tuple[Expr, ...]) -> Expr:
    """`expr[:, None]`: the new axes go to the aranges inside, so that aranges of different axes stay apart."""
    if expr[0] == "arange" or (expr[0] == "index" and expr[1][0] in ("arange", "index")):
        return ("index", expr, *dims)
    return rebuild(expr, lambda part: _spread(part, dims))

