"""Python expressions to fact expressions: names become what they were bound to, calls are recorded in evaluation order."""

from __future__ import annotations

import ast
from collections.abc import Callable

from graphlint.facts.expr import NONE, UNKNOWN, Expr, children

_BIN = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.MatMult: "@",
}
_UN = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
_CMP = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "isnot",
    ast.In: "in",
    ast.NotIn: "notin",
}
#: An expression larger than this is no evidence any more; the name that held it stays.
MAX_NODES = 160


class Evaluator:
    """Evaluates expressions against an environment of local names.

    `on_call` is told of every call in the order Python evaluates them; `make_function` turns a lambda into a function of its own.
    """

    def __init__(self, module: str, on_call: Callable[[Expr, ast.Call], None], make_function: Callable[[ast.Lambda], Expr]) -> None:
        self.module = module
        #: qualified name of the class whose method is walked: what a bare `super()` starts from
        self.owner: str | None = None
        self.env: dict[str, Expr] = {}
        self._on_call = on_call
        self._make_function = make_function
        self._sizes: dict[int, tuple[Expr, int]] = {}

    def size(self, expr: Expr) -> int:
        """Number of nodes, shared ones counted each time they are reached."""
        known = self._sizes.get(id(expr))
        if known is not None:
            return known[1]
        total = 1
        for child in children(expr):
            total += self.size(child)
        self._sizes[id(expr)] = (expr, total)
        return total

    def bind(self, name: str, value: Expr) -> Expr:
        """Bind a local name; a value too large to be evidence is forgotten."""
        if value[0] == "let" and value[1] == name:
            bound = value
        elif self.size(value) > MAX_NODES:
            bound = ("local", name)
        else:
            bound = ("let", name, value)
        self.env[name] = bound
        return bound

    def __call__(self, node: ast.expr | None) -> Expr:
        """The value of an expression; NONE for no expression."""
        if node is None:
            return NONE
        method = _DISPATCH.get(type(node))
        return method(self, node) if method else UNKNOWN

    def _name(self, node: ast.Name) -> Expr:
        return self.env.get(node.id) or ("global", node.id, self.module)

    def _constant(self, node: ast.Constant) -> Expr:
        value = node.value
        return ("const", value) if value is None or value is Ellipsis or isinstance(value, (bool, int, float, str)) else UNKNOWN

    def _attribute(self, node: ast.Attribute) -> Expr:
        return ("attr", self(node.value), node.attr)

    def _subscript(self, node: ast.Subscript) -> Expr:
        base = self(node.value)
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return ("index", base, *(self(item) for item in items))

    def _slice(self, node: ast.Slice) -> Expr:
        return ("slice", self(node.lower), self(node.upper), self(node.step))

    def _bin(self, node: ast.BinOp) -> Expr:
        return ("bin", _BIN[type(node.op)], self(node.left), self(node.right))

    def _unary(self, node: ast.UnaryOp) -> Expr:
        inner = self(node.operand)
        if isinstance(node.op, ast.USub) and inner[0] == "const" and isinstance(inner[1], (int, float)):
            return ("const", -inner[1])
        return ("un", _UN[type(node.op)], inner)

    def _compare(self, node: ast.Compare) -> Expr:
        left = self(node.left)
        parts: list[Expr] = []
        for op, right_node in zip(node.ops, node.comparators, strict=False):
            right = self(right_node)
            parts.append(("cmp", _CMP[type(op)], left, right))
            left = right
        return parts[0] if len(parts) == 1 else ("and", *parts)

    def _bool(self, node: ast.BoolOp) -> Expr:
        return ("and" if isinstance(node.op, ast.And) else "or", *(self(value) for value in node.values))

    def _ifexp(self, node: ast.IfExp) -> Expr:
        return ("if", self(node.test), self(node.body), self(node.orelse))

    def _call(self, node: ast.Call) -> Expr:
        func = self(node.func)
        args = tuple(("star", self(arg.value)) if isinstance(arg, ast.Starred) else self(arg) for arg in node.args)
        kwargs = tuple((keyword.arg or "**", self(keyword.value)) for keyword in node.keywords)
        if not args and func[:2] == ("global", "super") and self.owner is not None:
            head, *rest = self.owner.split(".")
            start: Expr = ("global", head, self.module)
            for part in rest:
                start = ("attr", start, part)
            args = (start, self.env.get("self", UNKNOWN))
        if func[:2] == ("global", "slice") and args and not kwargs:
            lo, hi, step = (NONE, args[0], NONE) if len(args) == 1 else (*args, NONE, NONE)[:3]
            return ("slice", lo, hi, step)
        expr: Expr = ("call", func, args, kwargs, node.lineno)
        self._on_call(expr, node)
        return expr

    def _tuple(self, node: ast.Tuple) -> Expr:
        return ("tuple", *(self(item) for item in node.elts))

    def _list(self, node: ast.List | ast.Set) -> Expr:
        return ("list", *(self(item) for item in node.elts))

    def _dict(self, node: ast.Dict) -> Expr:
        return ("dict", *((NONE if key is None else self(key), self(value)) for key, value in zip(node.keys, node.values, strict=False)))

    def _starred(self, node: ast.Starred) -> Expr:
        return ("star", self(node.value))

    def _named(self, node: ast.NamedExpr) -> Expr:
        return self.bind(node.target.id, self(node.value))

    def _lambda(self, node: ast.Lambda) -> Expr:
        return self._make_function(node)

    def _await(self, node: ast.Await) -> Expr:
        return self(node.value)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Expr:
        saved = dict(self.env)
        for generator in node.generators:
            self.bind_target(generator.target, ("iter", self(generator.iter)))
            for test in generator.ifs:
                self(test)
        element = self(node.elt)
        self.env = saved
        return ("list", ("star", element))

    def _dictcomp(self, node: ast.DictComp) -> Expr:
        saved = dict(self.env)
        for generator in node.generators:
            self.bind_target(generator.target, ("iter", self(generator.iter)))
        pair = (self(node.key), self(node.value))
        self.env = saved
        return ("dict", pair)

    def bind_target(self, target: ast.expr, value: Expr) -> None:
        """Bind the names of an assignment target; subscripts and attributes are the caller's."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            known = value
            while known[0] == "let":
                known = known[2]
            direct = known[0] in ("tuple", "list") and len(known) - 1 == len(target.elts) and not any(p[0] == "star" for p in known[1:])
            for index, part in enumerate(target.elts):
                inner = part.value if isinstance(part, ast.Starred) else part
                self.bind_target(inner, known[index + 1] if direct else ("item", value, index))


_DISPATCH: dict[type, Callable[..., Expr]] = {
    ast.Name: Evaluator._name,
    ast.Constant: Evaluator._constant,
    ast.Attribute: Evaluator._attribute,
    ast.Subscript: Evaluator._subscript,
    ast.Slice: Evaluator._slice,
    ast.BinOp: Evaluator._bin,
    ast.UnaryOp: Evaluator._unary,
    ast.Compare: Evaluator._compare,
    ast.BoolOp: Evaluator._bool,
    ast.IfExp: Evaluator._ifexp,
    ast.Call: Evaluator._call,
    ast.Tuple: Evaluator._tuple,
    ast.List: Evaluator._list,
    ast.Set: Evaluator._list,
    ast.Dict: Evaluator._dict,
    ast.Starred: Evaluator._starred,
    ast.NamedExpr: Evaluator._named,
    ast.Lambda: Evaluator._lambda,
    ast.Await: Evaluator._await,
    ast.ListComp: Evaluator._comprehension,
    ast.SetComp: Evaluator._comprehension,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.DictComp: Evaluator._dictcomp,
}
