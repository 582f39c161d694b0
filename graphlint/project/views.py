"""Which storage an expression names, and which part of it: aliases, slices, halves of mirrored buffers, list elements."""

from __future__ import annotations

from typing import NamedTuple

from graphlint.facts.expr import NONE, UNKNOWN, Expr, children, strip
from graphlint.project.effect import CallSite
from graphlint.project.index import Index
from graphlint.project.substitute import Substitution
from graphlint.project.types import Types

#: attributes that name one half of a mirrored buffer (CpuGpuBuffer, UvaBackedTensor, SGLang pinned twins)
HALVES = frozenset({"np", "cpu", "gpu", "uva", "np_array", "cpu_tensor", "data", "T", "mT", "tensor"})
#: methods that return the same storage
SAME_STORAGE = frozenset(
    {
        "view",
        "reshape",
        "unsqueeze",
        "squeeze",
        "flatten",
        "contiguous",
        "detach",
        "numpy",
        "expand",
        "view_as",
        "t",
        "transpose",
        "permute",
        "as_strided",
        "unflatten",
        "expand_as",
        "cpu_",
        "zero_",
        "fill_",
        "copy_",
        "clamp_",
        "add_",
        "sub_",
        "mul_",
    }
)
#: further methods whose result is, or holds, the storage they are called on
KEEPS_STORAGE = SAME_STORAGE | {"narrow", "values", "get", "items"}
#: functions whose result has the elements of their last argument
SAME_ELEMENTS = frozenset({"tuple", "list", "reversed", "sorted", "cast", "enumerate", "zip"})
_DEPTH = 16
#: nodes of the call whose result owns a buffer; what is larger says nothing to a reader
_LARGEST_OWNER = 16


class View(NamedTuple):
    """A part of a storage: `path` is the chain of attributes that owns it; `lo:hi` slices dimension `axis` (None: whole)."""

    path: Expr
    axis: int
    lo: Expr | None
    hi: Expr | None
    #: the sliced bounds are exactly what the source says (no index by tensor, no ambiguity of branches)
    exact: bool = True
    #: one element of the dimension (`buf[i]`), not a run
    row: bool = False
    #: what chose this storage from a list of storages
    chosen_by: Expr | None = None

    @property
    def whole(self) -> bool:
        """The whole storage."""
        return self.lo is None and self.hi is None


class Views:
    """Resolves expressions to views. `of` needs the dynamic class of `self`."""

    def __init__(self, index: Index, types: Types) -> None:
        self.index = index
        self.types = types

    def of(self, expr: Expr, self_class: str | None, depth: int = 0) -> View | None:
        """The storage that `expr` names, or None (a fresh value, a number, not understood)."""
        if depth > _DEPTH:
            return None
        expr = strip(expr)
        op = expr[0]
        if op == "param":
            return None if expr[2] in ("self", "cls") else View(expr, 0, None, None)
        if op == "attr":
            return self._attribute(expr, self_class, depth)
        if op == "index":
            return self._index(expr, self_class, depth)
        if op == "iter":
            return self.of(expr[1], self_class, depth + 1)
        if op == "item":
            return self._item(expr, self_class, depth)
        if op in ("list", "tuple"):
            if len(expr) == 2:
                part = expr[1][1] if expr[1][0] == "star" else expr[1]
                return self.of(part, self_class, depth + 1)
            return None
        if op == "call":
            return self._call(expr, self_class, depth)
        if op in ("if", "phi", "or"):
            found = [v for part in (expr[2:] if op == "if" else expr[1:]) if (v := self.of(part, self_class, depth + 1)) is not None]
            if not found:
                return None
            if all(v.path == found[0].path for v in found):
                return found[0]._replace(exact=len(found) == 1 and found[0].exact)
            return found[0]._replace(exact=False)
        return None

    def _attribute(self, expr: Expr, self_class: str | None, depth: int) -> View | None:
        base, name = strip(expr[1]), expr[2]
        if name in HALVES and base[0] != "param":
            inner = self.of(base, self_class, depth + 1)
            if inner is not None:
                return inner
        owner = self.types.of(base, self_class)
        if owner is not None:
            bindings = self.index.attribute(owner, name)
            if bindings:
                alias = self._alias(bindings[0].value, base, owner, depth) if len(bindings) == 1 else None
                alias = alias or self._pointers(bindings[0].value, base, owner, depth)
                if alias is not None:
                    return alias
            method = self.index.method(owner, name)
            if (
                method is not None
                and not bindings
                and any(strip(d)[:2] == ("global", "property") for d in self.index.functions[method].fact.decorators)
            ):
                value = self._returned(method, {("param", method, "self"): base})
                return self.of(value, self_class, depth + 1) if value is not None else None
        container = self.of_path(base, self_class, depth + 1)
        return View(("attr", container, name), 0, None, None) if container is not None else None

    def _alias(self, value: Expr, base: Expr, owner: str, depth: int) -> View | None:
        """`self.x = self.buffers.x[...]`: the attribute is a view of a storage that another attribute owns."""
        value = strip(value)
        if value[0] not in ("attr", "index"):
            return None
        root = value
        while root[0] in ("attr", "index"):
            root = strip(root[1])
        if root[0] != "param" or root[2] != "self":
            return None
        return self.of(Substitution({root: base})(value), owner if strip(base)[0] == "param" else None, depth + 1)

    def _pointers(self, value: Expr, base: Expr, owner: str, depth: int) -> View | None:
        """A table of `data_ptr()`s stands for the buffers it points to."""
        value = strip(value)
        if value[0] != "call":
            return None
        table = find_data_ptr(value) or find_data_ptr(self.inline(value, owner) or UNKNOWN)
        if table is None:
            return None
        root = table
        while strip(root)[0] in ("attr", "index", "iter", "item"):
            root = strip(root)[1]
        root = strip(root)
        if root[0] in ("list", "tuple") and len(root) > 1:
            return self._pointers_of_list(root, base, owner, depth)
        if root[0] != "param" or root[2] != "self":
            return None
        return self.of(Substitution({root: base})(table), owner, depth + 1)

    def _pointers_of_list(self, display: Expr, base: Expr, owner: str, depth: int) -> View | None:
        part = display[1][1] if display[1][0] == "star" else display[1]
        root = strip(part)
        while root[0] in ("attr", "index", "iter", "item"):
            root = strip(root[1])
        if root[0] != "param" or root[2] != "self":
            return None
        return self.of(Substitution({root: base})(part), owner, depth + 1)

    def of_path(self, base: Expr, self_class: str | None, depth: int) -> Expr | None:
        """Canonical owner chain of an attribute: self, a parameter, a global, or an attribute of one of these."""
        base = strip(base)
        if base[0] in ("param", "global"):
            return base
        if base[0] == "attr":
            inner = self.of_path(base[1], self_class, depth + 1)
            return ("attr", inner, base[2]) if inner is not None else None
        if base[0] == "index":
            owner = self.types.of(base[1], self_class)
            method = self.index.method(owner, "__getitem__") if owner is not None else None
            if method is not None and depth < _DEPTH:
                element = self._returned(method, {("param", method, "self"): base[1]})
                if element is not None:
                    return self.of_path(element, self_class, depth + 1)
        if base[0] in ("index", "iter", "item"):
            return self.of_path(base[1], self_class, depth + 1)
        if base[0] in ("or", "phi"):
            return self.of_path(base[1], self_class, depth + 1)
        if base[0] == "if":
            return self.of_path(base[2], self_class, depth + 1)
        if base[0] == "call":
            return base if self.types.of(base, self_class) is not None and _at_most(base, _LARGEST_OWNER) else None
        return None

    def _index(self, expr: Expr, self_class: str | None, depth: int) -> View | None:
        base = self.of(expr[1], self_class, depth + 1)
        if base is None:
            return None
        for axis, item in enumerate(expr[2:]):
            item = strip(item)
            if item[0] == "slice":
                if item[1] == NONE and item[2] == NONE:
                    continue
                lo = None if item[1] == NONE or item[1] == ("const", 0) else item[1]
                hi = None if item[2] == NONE else item[2]
                return self._narrow(base, axis, lo, hi)
            if item in (NONE, ("const", Ellipsis)):
                continue
            if self._is_container(base.path, self_class):
                return base._replace(chosen_by=item)
            if item[0] == "const" and isinstance(item[1], str):
                return View(("attr", base.path, item[1]), 0, None, None)
            if axis == 0 and len(expr) == 3:
                if item[0] in ("const", "bin", "param", "item", "iter", "local", "un", "attr", "index", "if"):
                    return base._replace(lo=item, hi=("bin", "+", item, ("const", 1)), row=True, axis=0)
                return base._replace(lo=None, hi=None, exact=False)  # some lanes, chosen by a mask or an index tensor
        return base

    def _narrow(self, base: View, axis: int, lo: Expr | None, hi: Expr | None) -> View:
        if base.whole or base.row:
            return View(base.path, axis, lo, hi, base.exact, chosen_by=base.chosen_by)
        if base.axis != axis:
            return base
        offset = base.lo
        new_lo = offset if lo is None else lo if offset is None else ("bin", "+", offset, lo)
        if hi is None or (hi[0] == "const" and isinstance(hi[1], int) and hi[1] < 0):
            new_hi = base.hi
        else:
            new_hi = hi if offset is None else ("bin", "+", offset, hi)
        return View(base.path, axis, new_lo, new_hi, base.exact, chosen_by=base.chosen_by)

    def _is_container(self, path: Expr, self_class: str | None) -> bool:
        """A list or dict of buffers rather than a tensor."""
        if path[0] == "param":
            function = self.index.functions.get(path[1])
            for param in function.fact.params if function else ():
                if param.name == path[2] and param.annotation is not None:
                    return _container_note(param.annotation)
            return False
        if path[0] != "attr":
            return False
        owner = self.types.of(path[1], self_class)
        if owner is None:
            return False
        field = self.index.field(owner, path[2])
        if field is not None and field[0] is not None and _container_note(field[0]):
            return True
        return any(strip(b.value)[0] in ("list", "dict") for b in self.index.attribute(owner, path[2]))

    def _item(self, expr: Expr, self_class: str | None, depth: int) -> View | None:
        source = strip(expr[1])
        if source[0] == "iter":
            inner = strip(source[1])
            if inner[0] == "call":
                func = strip(inner[1])
                if func[0] == "global" and func[1] == "zip" and expr[2] < len(inner[2]):
                    return self.of(inner[2][expr[2]], self_class, depth + 1)
                if func[0] == "global" and func[1] == "enumerate" and expr[2] == 1 and inner[2]:
                    return self.of(inner[2][0], self_class, depth + 1)
                if func[0] == "attr" and func[2] == "items" and expr[2] == 1:
                    return self.of(func[1], self_class, depth + 1)
            return None
        if source[0] == "call":
            value = self.inline(source, self_class)
            if value is not None:
                value = strip(value)
                if value[0] == "tuple" and expr[2] + 1 < len(value):
                    return self.of(value[expr[2] + 1], self_class, depth + 1)
        return None

    def _call(self, expr: Expr, self_class: str | None, depth: int) -> View | None:
        func = strip(expr[1])
        if func[0] == "attr":
            if func[2] in SAME_STORAGE:
                return self.of(func[1], self_class, depth + 1)
            if func[2] == "narrow" and len(expr[2]) == 3 and expr[2][0][0] == "const":
                base = self.of(func[1], self_class, depth + 1)
                start, length = expr[2][1], expr[2][2]
                return self._narrow(base, expr[2][0][1], start, ("bin", "+", start, length)) if base else None
            if func[2] in ("values", "get"):
                return self.of(func[1], self_class, depth + 1)
        if func[0] == "global" and func[1] in ("tuple", "list", "reversed", "sorted", "cast") and expr[2]:
            return self.of(expr[2][-1], self_class, depth + 1)
        value = self.inline(expr, self_class)
        return self.of(value, self_class, depth + 1) if value is not None else None

    # -- calls ---------------------------------------------------------------------------------------------------------------------
    def bind_arguments(self, function_id: str, call: Expr, receiver: Expr | None) -> dict[Expr, Expr]:
        """Parameters of `function_id` -> arguments of `call` (self bound to `receiver`; defaults where absent)."""
        function = self.index.functions[function_id].fact
        mapping: dict[Expr, Expr] = {}
        positional = [p for p in function.params if p.kind == "pos"]
        if (
            receiver is not None
            and positional
            and function.owner is not None
            and function.parent is None
            and not _is_static(function.decorators)
        ):
            mapping["param", function_id, positional[0].name] = receiver
            positional = positional[1:]
        if not any(arg[0] == "star" for arg in call[2]):
            for param, arg in zip(positional, call[2], strict=False):
                mapping["param", function_id, param.name] = arg
        names = {p.name for p in function.params}
        for name, value in call[3]:
            if name in names:
                mapping["param", function_id, name] = value
        for param in function.params:
            key = ("param", function_id, param.name)
            if key not in mapping and param.default is not None:
                mapping[key] = param.default
        return mapping

    def receiver(self, call: Expr) -> Expr | None:
        """The object a method is called on (`super()` means the self of the enclosing function)."""
        func = strip(call[1])
        if func[0] != "attr":
            return None
        base = strip(func[1])
        receiver: Expr = base[2][1] if base[0] == "call" and strip(base[1])[:2] == ("global", "super") and len(base[2]) > 1 else func[1]
        return receiver

    def receiver_of(self, site: CallSite) -> Expr | None:
        """What `self` is in the function called at `site`: the receiver, or the new object for a constructor."""
        receiver = self.receiver(site.call)
        if receiver is None and self.index.functions[site.function].fact.name == "__init__":
            return site.call
        return receiver

    def inline(self, call: Expr, self_class: str | None) -> Expr | None:
        """The value a call of a project function returns, in the caller's terms (one return, or the first that is not None)."""
        target = self.types.callee(call[1], self_class)
        if target is None or target[0] != "function":
            return None
        return self._returned(target[1], self.bind_arguments(target[1], call, self.receiver(call)))

    def _returned(self, function_id: str, mapping: dict[Expr, Expr]) -> Expr | None:
        values = [e.a for e in self.index.functions[function_id].fact.events if e.kind == "return" and strip(e.a) != NONE]
        if not values or len(values) > 3:
            return None
        return Substitution(mapping)(values[-1] if len(values) == 1 else ("phi", *values))


def run_of(item: Expr) -> Expr | None:
    """How many rows `buf[i]` goes over from the first on, where `i` counts a loop: `range(n)`, or the place in `enumerate(x)`."""
    counted = item[0] == "item" and item[2] == 0
    element = strip(item[1]) if counted else item
    call = strip(element[1]) if element[0] == "iter" else UNKNOWN
    if call[0] != "call" or len(call[2]) != 1:
        return None
    func, of = strip(call[1]), call[2][0]
    if counted:
        return ("call", ("global", "len", func[2]), (of,), (), call[4]) if func[:2] == ("global", "enumerate") else None
    rows: Expr | None = of if func[:2] == ("global", "range") else None
    return rows


def _at_most(expr: Expr, limit: int) -> bool:
    """The expression has no more nodes than that, shared ones counted each time (which may be very many: it is left early)."""
    stack = [expr]
    count = 0
    while stack:
        node = stack.pop()
        count += 1
        if count > limit:
            return False
        stack.extend(children(node))
    return True


def find_data_ptr(expr: Expr) -> Expr | None:
    """The tensor expression whose `data_ptr()` appears in `expr`."""
    stack = [expr]
    while stack:
        node = stack.pop()
        if node[0] == "call":
            func = strip(node[1])
            if func[0] == "attr" and func[2] == "data_ptr":
                tensor: Expr = func[1]
                return tensor
        stack.extend(children(node))
    return None


def _container_note(note: Expr) -> bool:
    note = strip(note)
    if note[0] == "bin" and note[1] == "|":
        return _container_note(note[2]) or _container_note(note[3])
    if note[0] == "index":
        head = strip(note[1])
        name = head[1] if head[0] == "global" else ""
        if name in ("Optional", "Union"):
            return any(_container_note(part) for part in note[2:])
        return name in ("list", "List", "dict", "Dict", "tuple", "Tuple", "Sequence", "Iterable")
    return note[0] == "global" and note[1] in ("list", "dict", "tuple")


def _is_static(decorators: tuple[Expr, ...]) -> bool:
    return any(strip(d)[0] == "global" and strip(d)[1] == "staticmethod" for d in decorators)


is_static = _is_static
