"""Types of expressions: enough to find the class that a method or buffer belongs to."""

from __future__ import annotations

from graphlint.facts.expr import Expr, strip
from graphlint.project.index import Index

_WRAPPERS = {"Optional", "Union", "Annotated", "Final", "ClassVar", "Type", "type"}
_CONTAINERS = {"list", "List", "Sequence", "tuple", "Tuple", "Iterable", "dict", "Dict", "defaultdict", "set"}
_DEPTH = 12


class Types:
    """Type inference on demand. A type is a class id of the project, or None."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._memo: dict[tuple[int, str | None], tuple[Expr, str | None]] = {}

    def of(self, expr: Expr, self_class: str | None = None, depth: int = 0) -> str | None:
        """Class id of the value of `expr`; `self_class` is the dynamic class of `self` in the function at hand."""
        if depth > _DEPTH:
            return None
        key = (id(expr), self_class)  # hashing an expression walks all of it, shared parts again and again
        known = self._memo.get(key)
        if known is not None:
            return known[1]
        self._memo[key] = (expr, None)
        result = self._of(expr, self_class, depth + 1)
        self._memo[key] = (expr, result)
        return result

    def _of(self, expr: Expr, self_class: str | None, depth: int) -> str | None:
        expr = strip(expr)
        op = expr[0]
        if op == "param":
            return self._param(expr, self_class)
        if op == "attr":
            base = self.of(expr[1], self_class, depth)
            return self.attribute(base, expr[2], depth) if base else None
        if op == "call":
            return self._call(expr, self_class, depth)
        if op == "if":
            return self.of(expr[2], self_class, depth) or self.of(expr[3], self_class, depth)
        if op in ("phi", "or", "and"):
            for part in expr[1:]:
                found = self.of(part, self_class, depth)
                if found:
                    return found
            return None
        if op == "item":
            return self._tuple_item(expr, self_class, depth)
        if op in ("index", "iter"):
            return self._element(expr[1], self_class, depth) or self._getitem(expr[1], self_class, depth)
        if op == "global":
            value = self.index.value(expr[1], expr[2])
            return self.of(value, None, depth) if value is not None else None
        return None

    def _param(self, expr: Expr, self_class: str | None) -> str | None:
        function = self.index.functions.get(expr[1])
        if function is None:
            return None
        if expr[2] in ("self", "cls"):
            return self_class or function.owner
        for param in function.fact.params:
            if param.name == expr[2]:
                return self.annotation(param.annotation)
        return None

    def annotation(self, note: Expr | None) -> str | None:
        """Class id that an annotation names, through Optional, unions and quotes; None for containers."""
        if note is None:
            return None
        note = strip(note)
        if note[0] == "bin" and note[1] == "|":
            return self.annotation(note[2]) or self.annotation(note[3])
        if note[0] == "index":
            head = strip(note[1])
            name = head[1] if head[0] == "global" else head[2] if head[0] == "attr" else ""
            if name in _WRAPPERS:
                for part in note[2:]:
                    found = self.annotation(part)
                    if found:
                        return found
            return self.annotation(head) if name not in _CONTAINERS else None
        if note[0] == "const" and isinstance(note[1], str) and note[1].isidentifier():
            return None
        resolved = self.index.resolve(note)
        return resolved[1] if resolved is not None and resolved[0] == "class" else None

    def element_annotation(self, note: Expr | None) -> str | None:
        """Class id of the elements of a container annotation."""
        if note is None:
            return None
        note = strip(note)
        if note[0] == "bin" and note[1] == "|":
            return self.element_annotation(note[2]) or self.element_annotation(note[3])
        if note[0] == "index":
            head = strip(note[1])
            name = head[1] if head[0] == "global" else head[2] if head[0] == "attr" else ""
            if name in _WRAPPERS:
                return self.element_annotation(note[2])
            if name in _CONTAINERS:
                return self.annotation(note[-1]) or self.element_annotation(note[-1])
        return None

    def attribute(self, class_id: str, name: str, depth: int = 0) -> str | None:
        """Class id of an attribute: its annotation, what it is bound to, or what its property returns."""
        field = self.index.field(class_id, name)
        if field is not None:
            found = self.annotation(field[0])
            if found:
                return found
        for binding in self.index.attribute(class_id, name):
            found = self.of(binding.value, class_id, depth)
            if found:
                return found
        method = self.index.method(class_id, name)
        if method is not None:
            return self.annotation(self.index.functions[method].fact.returns)
        return None

    def element(self, container: Expr, self_class: str | None = None) -> str | None:
        """Class id of the elements of a container expression."""
        return self._element(container, self_class, 0)

    def _getitem(self, container: Expr, self_class: str | None, depth: int) -> str | None:
        """Type that `__getitem__` of an object of the project returns."""
        owner = self.of(container, self_class, depth)
        method = self.index.method(owner, "__getitem__") if owner is not None else None
        return self.annotation(self.index.functions[method].fact.returns) if method is not None else None

    def _tuple_item(self, expr: Expr, self_class: str | None, depth: int) -> str | None:
        """Type of one element of an unpacked value: by position where the callee's annotation is a tuple."""
        source = strip(expr[1])
        if source[0] == "call":
            target = self.callee(source[1], self_class, depth)
            if target is not None and target[0] == "function":
                note = self.index.functions[target[1]].fact.returns
                parts = _tuple_parts(note)
                if parts is not None and expr[2] < len(parts):
                    return self.annotation(parts[expr[2]])
        return self._element(expr[1], self_class, depth)

    def _element(self, container: Expr, self_class: str | None, depth: int) -> str | None:
        expr = strip(container)
        if expr[0] == "attr":
            base = self.of(expr[1], self_class, depth)
            if base is None:
                return None
            field = self.index.field(base, expr[2])
            if field is not None and field[0] is not None:
                return self.element_annotation(field[0])
            for binding in self.index.attribute(base, expr[2]):
                found = self._element(binding.value, base, depth + 1) if depth < _DEPTH else None
                if found:
                    return found
            return None
        if expr[0] == "param":
            function = self.index.functions.get(expr[1])
            for param in function.fact.params if function else ():
                if param.name == expr[2]:
                    return self.element_annotation(param.annotation)
            return None
        if expr[0] in ("list", "tuple"):
            for part in expr[1:]:
                found = self.of(part[1] if part[0] == "star" else part, self_class, depth)
                if found:
                    return found
            return None
        if expr[0] == "call":
            target = self.callee(expr[1], self_class, depth)
            if target is not None and target[0] == "function":
                return self.element_annotation(self.index.functions[target[1]].fact.returns)
            func = strip(expr[1])
            if func[0] == "global" and func[1] in ("enumerate", "reversed", "sorted", "list", "tuple", "zip") and expr[2]:
                return self._element(expr[2][0], self_class, depth + 1) if depth < _DEPTH else None
        if expr[0] in ("iter", "item", "index"):
            return self._element(expr[1], self_class, depth + 1) if depth < _DEPTH else None
        return None

    def _call(self, expr: Expr, self_class: str | None, depth: int) -> str | None:
        target = self.callee(expr[1], self_class, depth)
        if target is None:
            func = strip(expr[1])
            if func[0] == "attr" and func[2] in ("__enter__",):
                return self.of(func[1], self_class, depth)
            return None
        kind, name = target
        if kind == "class":
            return name
        if kind == "function":
            function = self.index.functions[name]
            note = function.fact.returns
            found = self.annotation(note)
            if found:
                return found
            for event in function.fact.events:
                if event.kind == "return":
                    value = strip(event.a)
                    if value[0] == "call":
                        inner = strip(value[1])
                        if inner[0] == "param" and inner[2] == "cls":
                            return function.owner
                        found = self.of(value, function.owner, depth)
                        if found:
                            return found
        return None

    def callee(self, func: Expr, self_class: str | None = None, depth: int = 0) -> tuple[str, str] | None:
        """What a call calls: ("function"|"class"|"kernel"|"external", id), or None."""
        func = strip(func)
        if func[0] in ("global", "func"):
            return self.index.resolve(func)
        if func[0] in ("if", "phi", "or") and depth < _DEPTH:
            for part in func[2:] if func[0] == "if" else func[1:]:
                chosen = self.callee(part, self_class, depth + 1)
                if chosen is not None:
                    return chosen
            return None
        if func[0] == "attr":
            direct = self.index.resolve(func)
            if direct is not None:
                return direct
            base = strip(func[1])
            if base[0] == "call" and strip(base[1])[:2] == ("global", "super"):
                start = self.index.resolve(base[2][0]) if base[2] else None
                if start is None or start[0] != "class":
                    return None
                inherited = self.index.after(self_class or start[1], start[1], func[2])
                return ("function", inherited) if inherited else None
            owner = self.of(func[1], self_class, depth)
            if owner is not None:
                kernel = self.index.kernel_of(owner, func[2])  # a kernel in a class is an opaque method too
                if kernel is not None:
                    return "kernel", kernel
                method = self.index.method(owner, func[2])
                if method is not None:
                    return "function", method
                for binding in self.index.attribute(owner, func[2]):
                    bound = self.index.resolve(binding.value)
                    if bound is not None:
                        return bound
        return None


def _tuple_parts(note: Expr | None) -> tuple[Expr, ...] | None:
    """Element annotations of `tuple[A, B]`; None for anything else, `tuple[A, ...]` included."""
    if note is None:
        return None
    note = strip(note)
    if note[0] != "index":
        return None
    head = strip(note[1])
    if head[0] != "global" or head[1] not in ("tuple", "Tuple") or any(strip(part)[0] == "unknown" for part in note[2:]):
        return None
    return tuple(note[2:])
