"""Buffers: one storage identity each, across objects and files, with capacity, initial value and meaning."""

from __future__ import annotations

from typing import NamedTuple

from graphlint.extents import Extent
from graphlint.facts.expr import Expr, show, strip
from graphlint.project.counts import Counts
from graphlint.project.effect import Site
from graphlint.project.index import Binding, Index
from graphlint.project.regions import runs_once
from graphlint.project.types import Types


class Buffer(NamedTuple):
    """A storage. `key` identifies it: owner instance, defining class and attribute."""

    key: str
    name: str
    owner: str
    meaning: str
    #: where it is allocated, when that was found
    site: Site | None
    capacity: Extent
    #: empty, zeros, full, ... of the allocation; None when unknown
    initial: str | None
    persistent: bool
    #: class whose attribute it is
    class_id: str | None = None
    #: an attribute of the object at hand, not of one that it holds
    own: bool = True


class Buffers:
    """Finds the buffer behind a canonical path."""

    def __init__(self, index: Index, types: Types, counts: Counts) -> None:
        self.index = index
        self.types = types
        self.counts = counts
        self._memo: dict[tuple[Expr, str | None], Buffer | None] = {}

    def of(self, path: Expr, self_class: str | None, module: str) -> Buffer | None:
        """Buffer of `path` (an attribute chain over self, a parameter or a global); None when it is no attribute."""
        key = (path, self_class)
        if key not in self._memo:
            self._memo[key] = self._of(path, self_class, module)
        return self._memo[key]

    def _of(self, path: Expr, self_class: str | None, module: str) -> Buffer | None:
        if path[0] != "attr":
            return None
        base, name = strip(path[1]), path[2]
        owner = self.types.of(base, self_class) or self.types.element(base, self_class)
        if owner is None:
            text = show(path, names=False)
            if base[0] == "param" and base[2] not in ("self", "cls"):
                return None
            return Buffer(
                f"?{self_class}|{text}", name, text.rsplit(".", 1)[0], self._meaning(name, module), None, Extent.unknown(), None, True
            )
        bindings = self.index.attribute(owner, name)
        defining = bindings[0].function.owner if bindings else self._field_owner(owner, name)
        allocation = self._allocation(bindings, owner)
        instance = self._instance(base, self_class)
        site = capacity = initial = None
        if allocation is not None:
            binding, initial = allocation
            site = Site(binding.function.path, binding.event.span, binding.function.id)
            capacity = self.counts.capacity(path, self_class, binding.function.module)
        owner_name = self.index.classes[owner].name
        persistent = self._persistent(bindings, base)
        return Buffer(
            f"{instance}|{defining or owner}.{name}",
            name,
            owner_name,
            self._meaning(name, module),
            site,
            capacity or Extent.unknown(),
            initial,
            persistent,
            defining or owner,
            base[0] == "param",
        )

    def _meaning(self, name: str, module: str) -> str:
        return self.counts.vocabulary(module).meaning(name)

    def _field_owner(self, owner: str, name: str) -> str | None:
        for cls in self.index.mro(owner):
            if any(field == name for field, _, _ in self.index.classes[cls].fact.fields):
                return cls
        return None

    def _instance(self, base: Expr, self_class: str | None) -> str:
        """Which object of its class: self, one that this class constructs, or one that is shared."""
        if base[0] == "param" and base[2] in ("self", "cls"):
            return "self"
        if base[0] == "attr":
            holder = self.types.of(base[1], self_class)
            if holder is not None:
                for binding in self.index.attribute(holder, base[2]):
                    value = strip(binding.value)
                    if value[0] == "call":
                        return f"{binding.function.owner}.{base[2]}"
        return "*"

    def _allocation(self, bindings: list[Binding], owner: str) -> tuple[Binding, str | None] | None:
        for binding in bindings:
            kind = _initial(binding.value)
            if kind is not None:
                return binding, kind
        for binding in bindings:
            if self.counts.shape_of(binding.value, owner) is not None:
                return binding, "zeros"
        return None

    @staticmethod
    def _persistent(bindings: list[Binding], base: Expr) -> bool:
        """It outlives a step: not re-created by every step."""
        if not bindings:
            return bool(base[0] != "call")
        return any(runs_once(b.function.fact.name) for b in bindings) or not any(_initial(b.value) for b in bindings)


def _initial(value: Expr) -> str | None:
    """Initial content that an allocation gives: empty, zeros, ones, full, arange; None when it is no allocation."""
    value = strip(value)
    if value[0] == "if":
        return _initial(value[2]) or _initial(value[3])
    if value[0] in ("list", "tuple") and len(value) > 1:
        return _initial(value[1][1] if value[1][0] == "star" else value[1])
    if value[0] != "call":
        return None
    func = strip(value[1])
    name = str(func[2] if func[0] == "attr" else func[1] if func[0] == "global" else "")
    for kind in ("empty", "zeros", "ones", "full", "arange"):
        if name in (kind, f"{kind}_like", f"new_{kind}"):
            return kind
    if name in ("tensor", "randn", "rand"):
        return "full"
    return None
