"""A checkout seen as modules: parsed when asked for, names followed through imports and base classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


class Module:
    """One parsed file: its classes, functions, top-level assignments and imported names."""

    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        self.name = name
        self.path = path
        self.tree = tree
        self.classes: dict[str, ast.ClassDef] = {}
        self.functions: dict[str, ast.FunctionDef] = {}
        self.assigns: dict[str, ast.expr] = {}
        #: local name -> (module, attribute or None for a whole module)
        self.imports: dict[str, tuple[str, str | None]] = {}
        for node in _top_level(tree.body):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
            elif isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.assigns[target.id] = node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.assigns[node.target.id] = node.value
        for inner in ast.walk(tree):
            if isinstance(inner, ast.ImportFrom) and (inner.module or inner.level):
                origin = self._absolute(inner)
                for alias in inner.names:
                    self.imports[alias.asname or alias.name] = (origin, alias.name)
            elif isinstance(inner, ast.Import):
                for alias in inner.names:
                    self.imports[alias.asname or alias.name.split(".")[0]] = (alias.name, None)

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".")
        if not self.path.endswith("__init__.py"):
            package = package[:-1]
        package = package[: len(package) - node.level + 1]
        return ".".join([*package, *([node.module] if node.module else [])])


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a module, those under `if` and `try` included."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _top_level(node.body)
            yield from _top_level(node.orelse)
        elif isinstance(node, ast.Try):
            yield from _top_level(node.body)
            for handler in node.handlers:
                yield from _top_level(handler.body)
        else:
            yield node


ClassAt = tuple[Module, ast.ClassDef]


class Checkout:
    """The `vllm` package under a root folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module of this dotted name, or None where the checkout has no such file or it does not parse."""
        if name not in self._modules:
            self._modules[name] = self._load(name)
        return self._modules[name]

    def _load(self, name: str) -> Module | None:
        base = self.root.joinpath(*name.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                try:
                    tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
                except (SyntaxError, ValueError):
                    return None
                return Module(name, path.relative_to(self.root).as_posix(), tree)
        return None

    def files_with(self, *tokens: bytes, under: str = "vllm") -> list[str]:
        """Dotted names of the modules whose bytes hold one of the tokens."""
        found = []
        for path in sorted(self.root.joinpath(under).rglob("*.py")):
            data = path.read_bytes()
            if any(token in data for token in tokens):
                relative = path.relative_to(self.root).with_suffix("")
                parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
                found.append(".".join(parts))
        return found

    def find_class(self, module: Module, name: str, depth: int = 8) -> ClassAt | None:
        """The class that `name` means inside `module`, through imports."""
        if name in module.classes:
            return module, module.classes[name]
        if depth and name in module.imports:
            target, attribute = module.imports[name]
            other = self.module(target)
            if other is not None and attribute is not None:
                return self.find_class(other, attribute, depth - 1)
        return None

    def find_function(self, module: Module, name: str, depth: int = 8) -> tuple[Module, ast.FunctionDef] | None:
        """The function that `name` means inside `module`, through imports."""
        if name in module.functions:
            return module, module.functions[name]
        if depth and name in module.imports:
            target, attribute = module.imports[name]
            other = self.module(target)
            if other is not None and attribute is not None:
                return self.find_function(other, attribute, depth - 1)
        return None

    def lineage(self, module: Module, node: ast.ClassDef, seen: frozenset[int] = frozenset()) -> Iterator[ClassAt]:
        """The class and its bases, nearest first (depth first, as far as they can be found)."""
        if id(node) in seen:
            return
        yield module, node
        for base in node.bases:
            name = base_name(base)
            if name is None:
                continue
            found = self.find_class(module, name)
            if found is not None:
                yield from self.lineage(*found, seen=seen | {id(node)})

    def method(self, module: Module, node: ast.ClassDef, name: str) -> tuple[Module, ast.ClassDef, ast.FunctionDef] | None:
        """The method that an instance of the class would run."""
        for where, cls in self.lineage(module, node):
            for item in cls.body:
                if isinstance(item, ast.FunctionDef) and item.name == name:
                    return where, cls, item
        return None

    def attribute(self, module: Module, node: ast.ClassDef, name: str) -> tuple[Module, ast.ClassDef, ast.expr] | None:
        """The class attribute of this name, inherited or own."""
        for where, cls in self.lineage(module, node):
            for item in cls.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id == name:
                    if item.value is not None:
                        return where, cls, item.value
                elif isinstance(item, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in item.targets):
                    return where, cls, item.value
        return None


def base_name(node: ast.expr) -> str | None:
    """`Base`, `Base[T]` and `module.Base` alike give "Base"."""
    if isinstance(node, ast.Subscript):
        return base_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def strings_in(node: ast.AST) -> list[str]:
    """Every string constant below a node, in source order."""
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
