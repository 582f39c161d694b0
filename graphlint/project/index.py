"""Names to definitions across files: imports (through re-exports), classes and their hierarchy, attributes and their types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from graphlint.facts.expr import Expr, strip
from graphlint.facts.model import Class, Event, FileFacts, Function
from graphlint.project.kernels import KernelDef


class FunctionDef(NamedTuple):
    """A function with the file it is in. `id` is `module:qualname`."""

    id: str
    module: str
    path: str
    fact: Function

    @property
    def owner(self) -> str | None:
        """Id of the class that owns it."""
        return f"{self.module}:{self.fact.owner}" if self.fact.owner else None


class ClassDef(NamedTuple):
    """A class with the file it is in."""

    id: str
    module: str
    path: str
    fact: Class

    @property
    def name(self) -> str:
        """Bare name."""
        return self.fact.qualname.rsplit(".", 1)[-1]


class Binding(NamedTuple):
    """`self.attr = value` in a method of a class."""

    value: Expr
    function: FunctionDef
    event: Event


class Index:
    """All definitions of a set of files."""

    def __init__(self, files: Iterable[FileFacts]) -> None:
        self.files = {file.module: file for file in files}
        self.functions: dict[str, FunctionDef] = {}
        self.classes: dict[str, ClassDef] = {}
        self.kernels: dict[str, KernelDef] = {}
        self._imports = {m: {local: (module, name) for local, module, name in f.imports} for m, f in self.files.items()}
        self._assigns = {m: dict(f.assigns) for m, f in self.files.items()}
        self._suffixes: dict[str, str] = {}
        self._attributes: dict[str, dict[str, list[Binding]]] = defaultdict(lambda: defaultdict(list))
        self._methods: dict[str, dict[str, str]] = defaultdict(dict)
        self.subclasses: dict[str, list[str]] = defaultdict(list)
        self._mro: dict[str, tuple[str, ...]] = {}
        self._resolved: dict[tuple[str, str], tuple[str, str] | None] = {}
        self._top_level: dict[str, list[tuple[str, str]]] | None = None
        #: bare name -> ids of functions of that name
        self.by_name: dict[str, list[str]] = defaultdict(list)
        for file in self.files.values():
            self._add(file)
        for cls in self.classes.values():
            for base in self.mro(cls.id)[1:]:
                self.subclasses[base].append(cls.id)

    def _add(self, file: FileFacts) -> None:
        parts = file.module.split(".")
        for start in range(len(parts)):
            self._suffixes.setdefault(".".join(parts[start:]), file.module)
        for function in file.functions:
            definition = FunctionDef(f"{file.module}:{function.qualname}", file.module, file.path, function)
            self.functions.setdefault(definition.id, definition)
            self.by_name[function.name].append(definition.id)
            if definition.owner is not None and function.parent is None:
                self._methods[definition.owner].setdefault(function.name, definition.id)
            if definition.owner is not None:
                self._collect_attributes(definition)
        for cls in file.classes:
            self.classes.setdefault(f"{file.module}:{cls.qualname}", ClassDef(f"{file.module}:{cls.qualname}", file.module, file.path, cls))
        for kernel in file.kernels:
            launched = KernelDef(file.module, file.path, kernel, file.kernel_text)
            self.kernels[launched.id] = launched

    def _collect_attributes(self, definition: FunctionDef) -> None:
        assert definition.owner is not None
        for event in definition.fact.events:
            if event.kind == "bind" and event.b is not None and not event.op:
                base = strip(event.a[1])
                if base[0] == "param" and base[2] == "self":
                    self._attributes[definition.owner][event.a[2]].append(Binding(event.b, definition, event))

    # -- modules and names ---------------------------------------------------------------------------------------------------------
    def module(self, dotted: str) -> str | None:
        """The module of this project that `import dotted` finds (by its trailing path)."""
        return dotted if dotted in self.files else self._suffixes.get(dotted)

    def lookup(self, name: str, module: str) -> tuple[str, str] | None:
        """What `name` means in `module`: ("function"|"class"|"kernel"|"module"|"value"|"external", id)."""
        key = (name, module)
        if key not in self._resolved:
            self._resolved[key] = None
            self._resolved[key] = self._lookup(name, module)
        return self._resolved[key]

    def _lookup(self, name: str, module: str) -> tuple[str, str] | None:
        here = f"{module}:{name}"
        if here in self.kernels:
            return "kernel", here
        if here in self.classes:
            return "class", here
        if here in self.functions:
            return "function", here
        imported = self._imports.get(module, {}).get(name)
        if imported is not None:
            source, attribute = imported
            target = self.module(source)
            if attribute is None:
                return ("module", target) if target else ("external", source)
            if target is not None:
                found = self.lookup(attribute, target)
                if found is not None:
                    return found
            submodule = self.module(f"{source}.{attribute}")
            if submodule is not None:
                return "module", submodule
            return self._handed_on(source, attribute, module) or ("external", f"{source}.{attribute}")
        if name in self._assigns.get(module, {}):
            value = strip(self._assigns[module][name])
            if value[0] == "global" and value[1] != name:
                return self.lookup(value[1], module)
            return "value", here
        return None

    def _handed_on(self, source: str, name: str, module: str) -> tuple[str, str] | None:
        """What a module of the same package that was not read may have imported from elsewhere: the only definition of that name."""
        if self.module(source) is not None or source.split(".")[0] not in module.split("."):
            return None
        if self._top_level is None:
            self._top_level = defaultdict(list)
            for kind, definitions in (("kernel", self.kernels), ("class", self.classes), ("function", self.functions)):
                for definition in definitions:
                    qualname = definition.split(":", 1)[1]
                    if "." not in qualname and (kind == "kernel" or definition not in self.kernels):
                        self._top_level[qualname].append((kind, definition))
        found = self._top_level.get(name, [])
        return found[0] if len(found) == 1 else None

    def value(self, name: str, module: str) -> Expr | None:
        """The module-level value of a name, through imports."""
        found = self.lookup(name, module)
        if found is None or found[0] != "value":
            return None
        owner, local = found[1].split(":", 1)
        return self._assigns[owner][local]

    def resolve(self, expr: Expr) -> tuple[str, str] | None:
        """Definition that a global name, or a chain of attributes over a module or class, stands for."""
        expr = strip(expr)
        if expr[0] == "global":
            return self.lookup(expr[1], expr[2])
        if expr[0] == "func":
            return ("function", expr[1])
        if expr[0] == "attr":
            base = self.resolve(expr[1])
            if base is None:
                return None
            if base[0] == "module":
                return self.lookup(expr[2], base[1]) or (("module", m) if (m := self.module(f"{base[1]}.{expr[2]}")) else None)
            if base[0] == "class":
                nested = f"{base[1]}.{expr[2]}"
                if nested in self.kernels:
                    return "kernel", nested
                method = self.method(base[1], expr[2])
                return ("function", method) if method else None
            if base[0] == "external":
                return "external", f"{base[1]}.{expr[2]}"
        return None

    # -- classes -------------------------------------------------------------------------------------------------------------------
    def mro(self, class_id: str) -> tuple[str, ...]:
        """The class and its bases inside the project, nearest first (depth first, duplicates dropped)."""
        known = self._mro.get(class_id)
        if known is not None:
            return known
        self._mro[class_id] = (class_id,)
        order = [class_id]
        cls = self.classes.get(class_id)
        for base in cls.fact.bases if cls else ():
            target = strip(base)
            if target[0] == "index":
                target = strip(target[1])
            found = self.resolve(target)
            if found is not None and found[0] == "class":
                order.extend(c for c in self.mro(found[1]) if c not in order)
        self._mro[class_id] = tuple(order)
        return self._mro[class_id]

    def method(self, class_id: str, name: str) -> str | None:
        """Function id of a method, inherited ones included."""
        for owner in self.mro(class_id):
            found = self._methods.get(owner, {}).get(name)
            if found is not None:
                return found
        return None

    def kernel_of(self, class_id: str, name: str) -> str | None:
        """A kernel nested in a class (`@staticmethod @triton.jit`)."""
        for owner in self.mro(class_id):
            if f"{owner}.{name}" in self.kernels:
                return f"{owner}.{name}"
        return None

    def after(self, class_id: str, owner: str, name: str) -> str | None:
        """The method `super().name` finds from `owner` in the hierarchy of `class_id`."""
        order = self.mro(class_id)
        for base in order[order.index(owner) + 1 :] if owner in order else ():
            found = self._methods.get(base, {}).get(name)
            if found is not None:
                return found
        return None

    def attribute(self, class_id: str, name: str) -> list[Binding]:
        """Every `self.name = value` in the class, else in its bases (nearest that has one)."""
        for owner in self.mro(class_id):
            found = self._attributes.get(owner, {}).get(name)
            if found:
                return found
        return []

    def attributes(self, class_id: str) -> dict[str, list[Binding]]:
        """All attributes bound in methods of the class, inherited ones included."""
        merged: dict[str, list[Binding]] = {}
        for owner in self.mro(class_id):
            for name, bindings in self._attributes.get(owner, {}).items():
                merged.setdefault(name, bindings)
        return merged

    def field(self, class_id: str, name: str) -> tuple[Expr | None, Expr | None] | None:
        """(annotation, default) of a class-level field."""
        for owner in self.mro(class_id):
            cls = self.classes.get(owner)
            for field, note, default in cls.fact.fields if cls else ():
                if field == name:
                    return note, default
        return None

    def methods(self, class_id: str) -> dict[str, str]:
        """Method name -> function id, inherited ones included."""
        merged: dict[str, str] = {}
        for owner in self.mro(class_id):
            for name, function in self._methods.get(owner, {}).items():
                merged.setdefault(name, function)
        return merged

    def dynamic_classes(self, function: FunctionDef) -> list[str | None]:
        """Dynamic classes for which this method is the one that runs."""
        owner = function.owner
        if owner is None:
            return [None]
        if function.fact.parent is not None:
            return [owner]
        found = [c for c in (owner, *self.subclasses.get(owner, ())) if self.method(c, function.fact.name) == function.id]
        leaves = [c for c in found if not any(other in self.subclasses.get(c, ()) for other in found)]
        return list(leaves[:6] or [owner])
