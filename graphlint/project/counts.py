"""Extents of expressions: definitions first, names last."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Literal

from graphlint.extents import CAPACITY, LIVE, PADDED, UNSURE, Atom, Extent, Vocabulary, load_vocabulary
from graphlint.extents.algebra import RANK
from graphlint.facts.expr import NONE, Expr, strip
from graphlint.project.index import FunctionDef, Index
from graphlint.project.regions import runs_once
from graphlint.project.types import Types
from graphlint.project.views import Views

#: Which alternative of a merge counts: the largest a reader is known to see, the smallest a writer may have covered, or the largest a
#: fill may reach (unknown as soon as one alternative is).
Bias = Literal["upper", "lower", "cover"]
_DEPTH = 24
_SIZES = ("new_zeros", "zeros", "empty", "ones", "full", "new_empty", "new_full", "new_ones", "rand", "randn")


#: how many lanes of a padded count are padding
_PADDING = re.compile(r"num_(pad|padding|padded_(rows|reqs|tokens|lanes))|pad(ding)?_(len|size|count|rows)|n_pad")


class Counts:
    """Infers extents. `captured` are functions that run under capture: their live counts are padded there."""

    def __init__(self, index: Index, types: Types, views: Views, engine: str = "auto") -> None:
        self.index = index
        self.types = types
        self.views = views
        self.engine = engine
        self.captured: set[str] = set()
        self._memo: dict[tuple[int, str | None, Bias, str], tuple[Expr, Extent]] = {}
        self._fields: dict[tuple[str, str], list[tuple[FunctionDef, Expr]]] | None = None
        self._lengths: dict[tuple[str, str, int, Bias], Extent] = {}

    def vocabulary(self, module: str) -> Vocabulary:
        """Vocabulary for code of `module`."""
        if self.engine != "auto":
            return load_vocabulary(self.engine)
        parts = module.split(".")
        return load_vocabulary("sglang" if "sglang" in parts else "vllm" if "vllm" in parts else "auto")

    def of(self, expr: Expr | None, self_class: str | None, module: str, bias: Bias = "upper") -> Extent:
        """Extent of a count expression as code of `module` computes it."""
        if expr is None:
            return Extent.unknown()
        key = (id(expr), self_class, bias, module)  # as in `Types.of`: no deep hashing
        known = self._memo.get(key)
        if known is not None:
            return known[1]
        self._memo[key] = (expr, Extent.unknown())
        extent = self._of(expr, self_class, module, bias, 0)
        self._memo[key] = (expr, extent)
        return extent

    def _of(self, expr: Expr, cls: str | None, module: str, bias: Bias, depth: int) -> Extent:
        if depth > _DEPTH:
            return Extent.unknown()
        op = expr[0]
        if op == "let":
            return self._let(expr, cls, module, bias, depth)
        if op == "const":
            return Extent.number(expr[1]) if isinstance(expr[1], int) and not isinstance(expr[1], bool) else Extent.unknown()
        if op == "param":
            return self._param(expr, cls, module)
        if op in ("local", "global"):
            return self._named(expr[1], module)
        if op == "attr":
            return self._attribute(expr, cls, module, bias, depth)
        if op == "bin":
            return self._arithmetic(expr, cls, module, bias, depth)
        if op in ("if", "or", "and", "phi"):
            parts = expr[2:] if op == "if" else expr[1:]
            return self._join([self._of(part, cls, module, bias, depth + 1) for part in parts if strip(part) != NONE], bias)
        if op == "index":
            return self._element(expr, cls, module, bias, depth)
        if op == "item":
            return self._item(expr, cls, module, bias, depth)
        if op == "call":
            return self._call(expr, cls, module, bias, depth)
        if op == "load":
            return self._loaded(str(expr[1]), expr[2], cls, module, bias, depth)
        return Extent.unknown()

    def _let(self, expr: Expr, cls: str | None, module: str, bias: Bias, depth: int) -> Extent:
        value = self._of(expr[2], cls, module, bias, depth + 1)
        written = self._named(expr[1], module)
        if value.main is not None and written.main is not None and value.unit != written.unit:
            # `num_reqs = num_tokens`: the author says that one counts the other here
            return Extent.of(Atom(written.main.unit, value.main.state, expr[1]))
        if value.known and (value.state not in (None, UNSURE)):
            return value
        named = written
        if not value.known:
            return named
        if (
            value.state == UNSURE
            and named.known
            and named.state != UNSURE
            and named.unit == value.unit
            and strip(expr[2])[0] not in ("attr", "param")
        ):
            return named
        return value

    def _named(self, name: str, module: str) -> Extent:
        atom = self.vocabulary(module).name(name)
        return Extent.of(atom) if atom is not None else Extent.unknown()

    def _param(self, expr: Expr, cls: str | None, module: str) -> Extent:
        function = self.index.functions.get(expr[1])
        vocabulary = self.vocabulary(function.module if function else module)
        atom = vocabulary.name(expr[2])
        if atom is None:
            atom = vocabulary.at_capture.get(expr[2]) if expr[1] in self.captured else None
            return Extent.unknown() if atom is None else Extent.of(atom)
        if expr[1] in self.captured and atom.state in (LIVE, UNSURE):
            return Extent.of(Atom(atom.unit, PADDED, f"captured {atom.tag}"))
        return Extent.of(atom)

    def _attribute(self, expr: Expr, cls: str | None, module: str, bias: Bias, depth: int) -> Extent:
        name = expr[2]
        vocabulary = self.vocabulary(module)
        base = strip(expr[1])
        owner = self.types.of(base, cls)
        if owner is not None:
            for ancestor in self.index.mro(owner):
                atom = vocabulary.field(self.index.classes[ancestor].name, name)
                if atom is not None:
                    return Extent.of(atom)
            field = self.index.field(owner, name)
            binding = self.index.attribute(owner, name)
            if len(binding) == 1 and (field is None) and base[0] == "param":
                value = self._of(binding[0].value, owner, binding[0].function.module, bias, depth + 1)
                if value.known and value.state not in (None, UNSURE):
                    return value
        else:
            known = _descriptor_like(expr[1])
            if known and name in ("num_tokens", "num_reqs"):
                return Extent.of(Atom("tokens" if name == "num_tokens" else "requests", PADDED, f"descriptor.{name}"))
        return self._named(name, module)

    def _arithmetic(self, expr: Expr, cls: str | None, module: str, bias: Bias, depth: int) -> Extent:
        op = expr[1]
        left = self._of(expr[2], cls, module, bias, depth + 1)
        other: Bias = bias if op != "-" else ("upper" if bias == "lower" else "lower")
        right = self._of(expr[3], cls, module, other, depth + 1)
        if op == "+":
            return left.add(right)
        if op == "-":
            if left.main is not None and left.state == PADDED and _PADDING.fullmatch(_last_name(expr[3]) or ""):
                return Extent.of(Atom(left.main.unit, LIVE, f"{left.main.tag} less padding"))
            return left.add(right, -1)
        factors = self.vocabulary(module).per_request
        if op == "*":
            for count, factor, node in ((left, right, expr[3]), (right, left, expr[2])):
                if count.unit == "requests" and (_last_name(node) in factors or (node[0] == "bin" and _last_name(node[2]) in factors)):
                    return count.retype("tokens")
                if not factor.terms and factor.known and count.known:
                    return count.scale(factor.constant)
            return Extent.unknown()
        if op == "//":
            if left.unit == "tokens" and (_last_name(expr[3]) in factors):
                return left.retype("requests")
            return Extent.unknown()
        return Extent.unknown()

    def _join(self, parts: list[Extent], bias: Bias) -> Extent:
        if bias == "cover" and not all(part.known for part in parts):
            return Extent.unknown()
        known = [part for part in parts if part.known and part.terms]
        if not known:
            numbers = [p for p in parts if p.known]
            return numbers[0] if numbers and len(numbers) == len(parts) else Extent.unknown()
        if any(part.state == UNSURE or part.unit is None for part in known):
            certain = [p for p in known if p.state not in (None, UNSURE)]
            if not certain or len(certain) < len(known):
                return next(p for p in known if p.state == UNSURE or p.unit is None)
        if len({part.unit for part in known}) > 1:
            return Extent.unknown()
        pick = min if bias == "lower" else max
        return pick(known, key=lambda part: RANK.get(part.state or "live", 0))

    def _element(self, expr: Expr, cls: str | None, module: str, bias: Bias, depth: int) -> Extent:
        base, item = strip(expr[1]), strip(expr[2])
        if base[0] == "attr" and base[2] == "shape" and item[0] == "const":
            return self.length(base[1], cls, module, bias, depth, item[1] if isinstance(item[1], int) else 0)
        name = _last_name(base)
        if name is not None and any(name.startswith(o) or name.endswith(o) for o in self.vocabulary(module).offsets):
            return self._loaded(name, item, cls, module, bias, depth)
        return Extent.unknown()

    def _loaded(self, name: str, item: Expr, cls: str | None, module: str, bias: Bias, depth: int) -> Extent:
        """An entry of a per-request offset table: the last one is the live token count (padded entries repeat it)."""
        if not any(offset in name for offset in self.vocabulary(module).offsets):
            return Extent.unknown()
        if item == ("const", 0):
            return Extent.number(0)
        last = item == ("const", -1) or self._of(item, cls, module, bias, depth + 1).unit == "requests"
        return Extent.of(Atom("tokens", LIVE, f"{name}[last]")) if last else Extent.unknown()

    def _item(self, expr: Expr, cls: str | None, module: str, bias: Bias, depth: int) -> Extent:
        source = strip(expr[1])
        if source[0] == "attr" and source[2] == "shape":
            return self.length(source[1], cls, module, bias, depth, expr[2])
        if source[0] == "call":
            value = self.views.inline(source, cls)
            if value is not None and strip(value)[0] == "tuple" and expr[2] + 1 < len(strip(value)):
                return self._of(strip(value)[expr[2] + 1], cls, module, bias, depth + 1)
        return Extent.unknown()

    def length(self, expr: Expr, cls: str | None, module: str, bias: Bias = "upper", depth: int = 0, axis: int = 0) -> Extent:
        """Length of dimension `axis` of a tensor expression: of the slice, else of the allocation."""
        view = self.views.of(expr, cls)
        if view is None:
            inner = strip(expr)
            if inner[0] == "attr":
                return self._constructed(inner, cls, bias, axis, depth)
            if inner[0] == "call":
                shape = allocation_shape(inner)
                if shape is not None and axis < len(shape):
                    return self._of(shape[axis], cls, module, bias, depth + 1)
            return Extent.unknown()
        if view.hi is not None and view.axis == axis:
            hi = self._of(view.hi, cls, module, bias, depth + 1)
            return hi if view.lo is None else hi.add(self._of(view.lo, cls, module, bias, depth + 1), -1)
        capacity = self.capacity(view.path, cls, module, axis, depth)
        return capacity if capacity.known else self._constructed(view.path, cls, bias, axis, depth)

    def _constructed(self, path: Expr, cls: str | None, bias: Bias, axis: int, depth: int) -> Extent:
        """Length of a field as the constructions of its class give it (those of steps, not of start-up); they must agree."""
        if path[0] != "attr" or depth > _DEPTH:
            return Extent.unknown()
        owner = self.types.of(path[1], cls)
        if owner is None:
            return Extent.unknown()
        stated = self.vocabulary(owner.split(":")[0]).rows.get((self.index.classes[owner].name, path[2])) if axis == 0 else None
        if stated is not None:
            return Extent.of(stated)
        if self.index.attribute(owner, path[2]):
            return Extent.unknown()
        key = (owner, path[2], axis, bias)
        if key not in self._lengths:
            self._lengths[key] = Extent.unknown()
            found = {
                self.length(value, function.owner, function.module, bias, depth + 6, axis)
                for function, value in self._field_values().get((owner, path[2]), ())
            }
            if len(found) == 1:
                self._lengths[key] = found.pop()
        return self._lengths[key]

    def _field_values(self) -> dict[tuple[str, str], list[tuple[FunctionDef, Expr]]]:
        """(class, field) -> what constructor calls pass for the field, with the function they stand in."""
        if self._fields is None:
            self._fields = defaultdict(list)
            for function in self.index.functions.values():
                if function.fact.opaque or runs_once(function.fact.name):
                    continue
                for event in function.fact.events:
                    if event.kind == "call" and event.a[3]:
                        target = self.types.callee(event.a[1], function.owner)
                        if target is not None and target[0] == "class":
                            for key, value in event.a[3]:
                                self._fields[target[1], key].append((function, value))
        return self._fields

    def capacity(self, path: Expr, cls: str | None, module: str, axis: int = 0, depth: int = 0) -> Extent:
        """Allocated length of a storage."""
        if path[0] != "attr" or depth > _DEPTH:
            return Extent.unknown()
        owner = self.types.of(path[1], cls) or self.types.element(path[1], cls)
        if owner is None:
            return Extent.unknown()
        found: list[Extent] = []
        for binding in self.index.attribute(owner, path[2]):
            shape = self.shape_of(binding.value, owner)
            if shape is not None and axis < len(shape):
                found.append(self._of(shape[axis], owner, binding.function.module, "upper", depth + 1))
        if not found or len({extent.unit for extent in found}) > 1:
            return Extent.unknown()
        return found[0]

    def shape_of(self, value: Expr, owner: str | None, depth: int = 0) -> list[Expr] | None:
        """Shape expressions of an allocation, through helper methods and wrappers."""
        value = strip(value)
        if depth > 4 or value[0] != "call":
            return None
        shape = allocation_shape(value)
        if shape is not None:
            return shape
        inlined = self.views.inline(value, owner)
        if inlined is not None:
            found = self.shape_of(inlined, owner, depth + 1)
            if found is not None:
                return found
        target = self.types.callee(value[1], owner)
        if (target is None or target[0] in ("class", "external", "function")) and value[2]:
            name = _last_name(value[1]) or ""
            if "uffer" in name or "Tensor" in name or name.startswith("_make"):
                first = strip(value[2][0])
                return list(first[1:]) if first[0] in ("tuple", "list") else [a for a in value[2] if a[0] != "star"]
        return None

    def _call(self, expr: Expr, cls: str | None, module: str, bias: Bias, depth: int) -> Extent:
        name = _last_name(expr[1])
        args = expr[2]
        if name in ("int", "cast", "round") and args:
            return self._of(args[-1], cls, module, bias, depth + 1)
        if name == "len" and args:
            return self.length(args[0], cls, module, bias, depth + 1)
        if name in ("size", "numel", "item", "tolist") and strip(expr[1])[0] == "attr":
            base = strip(expr[1])[1]
            if name == "item":
                return self._of(base, cls, module, bias, depth + 1)
            axis = args[0][1] if args and args[0][0] == "const" and isinstance(args[0][1], int) else 0
            return self.length(base, cls, module, bias, depth + 1, axis)
        if name in ("min", "max") and len(args) > 1:
            return self._extreme(name, [self._of(a, cls, module, bias, depth + 1) for a in args])
        if name == "sum" and strip(expr[1])[0] == "attr":
            summed = _last_name(strip(expr[1])[1]) or ""
            if "scheduled" in summed:
                return Extent.of(Atom("tokens", LIVE, f"sum of {summed}"))
        if name is not None and "pad" in name.lower() and args:
            for arg in args:
                live = self._of(arg, cls, module, bias, depth + 1)
                if live.main is not None:
                    return Extent.of(Atom(live.main.unit, PADDED, f"{name}({live.main.tag})"))
        value = self.views.inline(expr, cls)
        return self._of(value, cls, module, bias, depth + 6) if value is not None else Extent.unknown()

    @staticmethod
    def _extreme(name: str, parts: list[Extent]) -> Extent:
        known = [part for part in parts if part.terms and part.state not in (None, UNSURE)]
        if not known:
            return Extent.unknown()
        if name == "min" and len(known) < len(parts) and all(part.state == CAPACITY for part in known):
            return Extent.unknown()  # capped, but what is capped is not known
        units = {part.unit for part in known}
        if name == "min":
            if len(units) > 1:  # min(tokens, max requests): as many requests as fit
                requests = [part for part in known if part.unit == "requests"]
                others = [part for part in known if part.unit == "tokens"]
                if requests and others and others[0].state is not None:
                    return Extent.of(Atom("requests", others[0].state, "min"))
                return Extent.unknown()
            return min(known, key=lambda part: RANK[part.state or "live"])
        largest = max(known, key=lambda part: RANK[part.state or "live"])
        if len(units) > 1 or (len(known) < len(parts) and largest.state != CAPACITY):
            return Extent.unknown()  # a high-water mark, say, may be larger than what is known
        return largest


def _last_name(expr: Expr) -> str | None:
    while expr[0] == "let":
        return str(expr[1])
    if expr[0] in ("global", "local"):
        return str(expr[1])
    if expr[0] in ("attr", "param"):
        return str(expr[2])
    return None


def _descriptor_like(base: Expr) -> bool:
    name = _last_name(base) or ""
    return name.endswith(("batch_desc", "batch_descriptor")) or name in ("desc", "descriptor")


def allocation_shape(call: Expr) -> list[Expr] | None:
    """Shape of `torch.zeros(...)` and its relatives; None when the call allocates nothing that is known."""
    func = strip(call[1])
    name = _last_name(func)
    if name not in _SIZES or func[0] != "attr":
        return None
    args = list(call[2])
    for key, value in call[3]:
        if key == "size":
            args = [value]
    if not args:
        return None
    first = strip(args[0])
    if first[0] in ("tuple", "list"):
        return list(first[1:])
    return args if not name.endswith("full") else args[:1]
