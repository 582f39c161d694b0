"""What one function does to storages: writes, fills, updates, reads, launches and rebinds, in its own terms and in source order."""

from __future__ import annotations

from graphlint.facts.expr import NONE, Expr, children, strip
from graphlint.facts.model import Event
from graphlint.project.effect import CallSite, Effect, EffectKind, Item, Site
from graphlint.project.index import FunctionDef, Index
from graphlint.project.kernels import KernelDef
from graphlint.project.launches import launch_of
from graphlint.project.types import Types

#: in-place methods of tensors and arrays: name -> (kind, index of the value argument or None)
_INPLACE: dict[str, tuple[EffectKind, int | None]] = {
    "copy_": ("write", 0),
    "fill_": ("fill", 0),
    "fill": ("fill", 0),
    "zero_": ("fill", None),
    "random_": ("fill", None),
    "normal_": ("fill", None),
    "uniform_": ("fill", None),
    "index_fill_": ("update", 2),
    "masked_fill_": ("update", 1),
    "scatter_": ("update", None),
    "index_copy_": ("update", None),
    "index_add_": ("update", None),
    "scatter_add_": ("update", None),
    "add_": ("update", None),
    "sub_": ("update", None),
    "mul_": ("update", None),
    "div_": ("update", None),
    "clamp_": ("update", None),
    "clamp_min_": ("update", None),
    "clamp_max_": ("update", None),
    "masked_scatter_": ("update", None),
    "set_": ("rebind", 0),
    "resize_": ("rebind", None),
    "put_": ("update", None),
}
#: what `_foreach_copy_` and its relatives do to the storages of the list they are given first
_GROUPED: dict[str, EffectKind] = {"copy": "write", "zero": "fill", "fill": "fill"}
#: methods that move one half of a mirrored buffer to the other: neither half gets content that was not in the pair
_MIRROR = frozenset({"copy_to_gpu", "copy_to_cpu", "copy_to_uva", "to_gpu", "sync", "commit"})
#: methods and functions that neither read content nor keep a view
_INERT = frozenset(
    {
        "stride",
        "size",
        "dim",
        "numel",
        "data_ptr",
        "element_size",
        "is_contiguous",
        "storage_offset",
        "append",
        "extend",
        "len",
        "isinstance",
        "print",
        "debug",
        "info",
        "warning",
        "format",
        "hasattr",
        "getattr",
        "type",
        "id",
        "__loop__",
        "__case__",
        "view",
        "reshape",
        "unsqueeze",
        "squeeze",
        "range",
        "flatten",
        "numpy",
        "detach",
        "expand",
        "empty_like",
        "zeros_like",
        "full_like",
        "ones_like",
        "new_empty",
        "new_zeros",
        "tuple",
        "list",
        "zip",
        "enumerate",
        "reversed",
        "cast",
        "narrow",
        "items",
        "values",
        "keys",
        "get",
        "record_stream",
        "pin_memory",
        "cdiv",
    }
)


class Effects:
    """Derives effects from facts, one function at a time (memoised)."""

    def __init__(self, index: Index, types: Types) -> None:
        self.index = index
        self.types = types
        self._memo: dict[tuple[str, str | None], list[Item]] = {}

    def of(self, function: FunctionDef, self_class: str | None) -> list[Item]:
        """Effects, launches and project calls of a function, in source order."""
        key = (function.id, self_class)
        if key not in self._memo:
            self._memo[key] = list(self._derive(function, self_class))
        return self._memo[key]

    def _derive(self, function: FunctionDef, self_class: str | None) -> list[Item]:
        out: list[Item] = []
        lists = _collected_lists(function.fact.events)
        for event in function.fact.events:
            site = Site(function.path, event.span, function.id, event.guards)
            if event.kind == "store":
                self._store(event, site, out)
            elif event.kind == "bind" and event.b is not None:
                out.append(Effect("rebind", event.a, None, None, event.guards, event.withs, "bound", site))
                self._reads(event.b, event, site, "kept", out)
            elif event.kind == "return":
                self._reads(event.a, event, site, "returned", out)
            elif event.kind == "call":
                self._call(event, site, self_class, lists, out)
        return out

    def _store(self, event: Event, site: Site, out: list[Item]) -> None:
        assert event.b is not None
        value = event.b
        self._reads(value, event, site, "read", out)
        if event.op:
            kind: EffectKind = "update"
        else:
            kind = "fill" if is_constant(value) else "write"
        for target in spread(event.a):
            out.append(Effect(kind, target, None, None, event.guards, event.withs, "assigned", site))

    def _call(self, event: Event, site: Site, self_class: str | None, lists: dict[str, list[Expr]], out: list[Item]) -> None:
        call = event.a
        func = strip(call[1])
        name = func[2] if func[0] == "attr" else func[1] if func[0] in ("global", "local") else ""
        if func[0] == "index":
            kernel = self._kernel(func[1], self_class)
            if kernel is not None:
                out.append(launch_of(kernel, call, func[2:], event, site, self.index))
                return
        for key, value in call[3]:
            if key == "out":
                self._outs(value, event, site, str(name), out)
        grouped = _GROUPED.get(str(name).strip("_").rpartition("foreach_")[2]) if "foreach_" in str(name) else None
        if grouped is not None and call[2]:  # torch's own, or a wrapper that sorts the list first
            for part in self._listed(call[2][0], lists):
                out.append(Effect(grouped, part, None, None, event.guards, event.withs, f"{name}()", site))
            return
        if func[0] == "attr":
            if name in _INPLACE:
                kind, position = _INPLACE[name]
                if position is not None and position < len(call[2]):
                    self._reads(call[2][position], event, site, "copied", out)
                for touched in spread(func[1]):
                    out.append(Effect(kind, touched, None, None, event.guards, event.withs, f".{name}()", site))
                return
            if name == "copyto" and call[2]:
                out.append(Effect("write", call[2][0], None, None, event.guards, event.withs, "copyto()", site))
                return
            if name in _MIRROR:
                if name.endswith(("gpu", "uva")) and len(call[2]) == 1:
                    prefix: Expr = ("index", func[1], ("slice", NONE, call[2][0], NONE))
                    out.append(Effect("write", prefix, None, None, event.guards, event.withs, f".{name}()", site, mirror=True))
                return
        if name in _INERT:
            return
        target = self.types.callee(call[1], self_class)
        if target is not None and target[0] == "function":
            callee = self.index.functions[target[1]]
            if not callee.fact.opaque:
                out.append(CallSite(target[1], call, event.guards, event.withs, site))
                return
        constructor = target is not None and target[0] == "class"
        for argument in (*call[2], *(value for key, value in call[3] if key != "out")):
            self._reads(argument, event, site, f"stored in {name}" if constructor else f"passed to {name or 'a call'}", out)
        if constructor and target is not None:
            init = self.index.method(target[1], "__init__")
            if init is not None and not self.index.functions[init].fact.opaque:
                out.append(CallSite(init, call, event.guards, event.withs, site))

    def _kernel(self, func: Expr, self_class: str | None) -> KernelDef | None:
        target = self.types.callee(func, self_class)
        if target is not None and target[0] == "kernel":
            return self.index.kernels[target[1]]
        return None

    def _outs(self, value: Expr, event: Event, site: Site, name: str, out: list[Item]) -> None:
        target = strip(value)
        for part in target[1:] if target[0] in ("tuple", "list") else (value,):
            if part != NONE:
                out.append(Effect("write", part, None, None, event.guards, event.withs, f"{name}(out=)", site))

    @staticmethod
    def _listed(expr: Expr, lists: dict[str, list[Expr]]) -> list[Expr]:
        name = expr[1] if expr[0] in ("let", "local") else None
        inner = strip(expr)
        found = list(inner[1:]) if inner[0] in ("list", "tuple") else []
        return found + (lists.get(name, []) if isinstance(name, str) else [])

    def _reads(self, expr: Expr, event: Event, site: Site, how: str, out: list[Item]) -> None:
        for part in storages(expr):
            if not self._may_be_part(part):
                continue
            out.append(Effect("read", part, None, None, event.guards, event.withs, how, site))

    def _may_be_part(self, expr: Expr) -> bool:
        """It may name a part of a storage: a slice, a parameter that a caller binds to one, or what a function of the project returns."""
        while expr[0] in ("let", "attr", "iter", "item"):
            expr = expr[2] if expr[0] == "let" else expr[1]
        if expr[0] == "index":
            return True
        if expr[0] == "param":
            return expr[2] not in ("self", "cls")
        return expr[0] == "call" and self._returns_storage(expr)

    def _returns_storage(self, call: Expr) -> bool:
        func = strip(call[1])
        name = func[2] if func[0] == "attr" else func[1] if func[0] in ("global", "local") else None
        return name in self.index.by_name


def _collected_lists(events: tuple[Event, ...]) -> dict[str, list[Expr]]:
    """Local lists filled by append or extend: name -> what was appended."""
    found: dict[str, list[Expr]] = {}
    for event in events:
        if event.kind != "call":
            continue
        func = strip(event.a[1])
        if func[0] == "attr" and func[2] in ("append", "extend") and event.a[2]:
            base = func[1]
            if base[0] in ("let", "local", "phi"):
                name = base[1] if base[0] != "phi" else None
                value = event.a[2][0]
                parts = strip(value)[1:] if func[2] == "extend" and strip(value)[0] in ("list", "tuple") else (value,)
                if isinstance(name, str):
                    found.setdefault(name, []).extend(parts)
    return found


def is_constant(expr: Expr) -> bool:
    """A value that does not depend on lanes: a literal, a name in capitals, a signed one of these."""
    expr = strip(expr)
    if expr[0] == "const":
        return True
    if expr[0] == "un":
        return is_constant(expr[2])
    name = expr[1] if expr[0] == "global" else expr[2] if expr[0] == "attr" else ""
    return isinstance(name, str) and name.isupper()


def storages(expr: Expr) -> list[Expr]:
    """Outermost sub-expressions of `expr` that may name a storage: attributes, slices, parameters' slices.

    Arguments of nested calls are not repeated: those calls are events of their own.
    """
    found: list[Expr] = []
    stack = [expr]
    while stack:
        node = stack.pop()
        op = node[0]
        if op == "let":
            stack.append(node[2])
        elif op == "param":
            found.append(node)
        elif op in ("attr", "index"):
            found.append(node)
            if op == "index":
                stack.extend(item for item in node[2:] if strip(item)[0] in ("attr", "index"))
        elif op == "call":
            func = strip(node[1])
            if func[0] == "attr" and func[2] in (
                "view",
                "reshape",
                "unsqueeze",
                "flatten",
                "contiguous",
                "to",
                "clone",
                "long",
                "int",
                "repeat_interleave",
            ):
                stack.append(func[1])
            elif func[0] in ("attr", "global") and (func[1] if func[0] == "global" else func[2]) in ("tuple", "list"):
                stack.extend(node[2])
            else:
                found.append(node)
        elif op in ("const", "global", "local", "func", "unknown", "cmp"):
            continue
        else:
            stack.extend(children(node))
    return found


def spread(target: Expr) -> list[Expr]:
    """The storages one statement in a loop over several of them touches: `for b in (self.x, self.y): b[n:] = 0` is two fills."""
    chain: list[Expr] = []
    node = target
    while node[0] in ("let", "index", "attr"):
        chain.append(node)
        node = node[2] if node[0] == "let" else node[1]
    if node[0] != "iter":
        return [target]
    display = strip(node[1])
    if display[0] not in ("tuple", "list") or len(display) < 3 or any(part[0] == "star" for part in display[1:]):
        return [target]
    found: list[Expr] = []
    for part in display[1:]:
        value: Expr = part
        for outer in reversed(chain):
            value = ("let", outer[1], value) if outer[0] == "let" else (outer[0], value, *outer[2:])
        found.append(value)
    return found
