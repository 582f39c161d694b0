"""Takes one Triton kernel out of a source file, with its jit helpers and constants, so that it runs without the package it lives in.

The result is a module of its own: imports of triton, the constants the kernel mentions, its helpers, the kernel. Definitions of the
kernel's own file keep their line numbers, so that tracebacks and sanitizer reports name lines of the original.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

import msgspec

from graphlint.facts.jit import is_kernel

#: given a path inside the checkout, its text, or None when there is no such file
Sources = Callable[[str], "str | None"]

_BUILTINS = frozenset(dir(builtins))
_TRITON_MODULES = {
    "tl": "import triton.language as tl",
    "triton": "import triton",
    "libdevice": "from triton.language.extra import libdevice",
    "tldevice": "from triton.language.extra import libdevice as tldevice",
    "math": "import math",
    "HAS_TRITON": "HAS_TRITON = True",
}
_HEADER = "import triton; import triton.language as tl"


class Unsupported(Exception):
    """The kernel cannot be taken out; the message says what it needs."""


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel that stands by itself. `constants` are the values of module constants as source text."""

    name: str
    path: str
    line: int
    params: list[str]
    constexprs: list[str]
    defaults: dict[str, str]
    module: str
    helpers: list[str]
    #: constexpr values of the first autotune configuration
    autotune: dict[str, str] = {}


class _File:
    """One parsed source file and what its top level binds (through `if` and `try` too)."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.lines = text.splitlines()
        try:
            self.tree = ast.parse(text, filename=path)
        except SyntaxError as error:
            raise Unsupported(f"needs {path} to parse (line {error.lineno}: {error.msg})") from error
        self.functions: dict[str, ast.FunctionDef] = {}
        self.constants: dict[str, ast.expr] = {}
        self.constant_nodes: dict[str, ast.stmt] = {}
        self.imports: dict[str, tuple[str, str]] = {}
        for node in self._top_level(self.tree.body):
            self._bind(node)

    def _top_level(self, body: list[ast.stmt]) -> Iterator[ast.stmt]:
        for node in body:
            yield node
            if isinstance(node, ast.If):
                yield from self._top_level(node.body)
                yield from self._top_level(node.orelse)
            elif isinstance(node, ast.Try):
                yield from self._top_level(node.body)
                for handler in node.handlers:
                    yield from self._top_level(handler.body)

    def _bind(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef):
            self.functions.setdefault(node.name, node)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self.constants.setdefault(node.targets[0].id, node.value)
            self.constant_nodes.setdefault(node.targets[0].id, node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            self.constants.setdefault(node.target.id, node.value)
            self.constant_nodes.setdefault(node.target.id, node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.imports.setdefault(alias.asname or alias.name, ("." * node.level + (node.module or ""), alias.name))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.setdefault(alias.asname or alias.name.split(".")[0], (alias.name, ""))

    def find(self, name: str) -> ast.FunctionDef:
        """A function by its last name, at top level or nested."""
        short = name.rsplit(".", 1)[-1]
        if short in self.functions:
            return self.functions[short]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and node.name == short:
                return node
        raise Unsupported(f"needs a kernel {short} in {self.path}")


def _free_names(node: ast.FunctionDef) -> list[str]:
    """Names a function loads and does not bind, in order, decorators and annotations of Triton left out."""
    bound = {argument.arg for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
    loaded: dict[str, None] = {}
    for part in [*node.body, *node.args.defaults, *[value for value in node.args.kw_defaults if value]]:
        for inner in ast.walk(part):
            if isinstance(inner, ast.Name):
                if isinstance(inner.ctx, ast.Load):
                    loaded.setdefault(inner.id)
                else:
                    bound.add(inner.id)
            elif isinstance(inner, ast.arg):
                bound.add(inner.arg)
            elif isinstance(inner, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
                raise Unsupported(f"needs a kernel without {type(inner).__name__.lower()} statements (line {inner.lineno})")
    return [name for name in loaded if name not in bound]


def module_candidates(module: str, path: str) -> list[str]:
    """Paths in the checkout that the import of `module` from the file at `path` may mean, most likely first."""
    here = PurePosixPath(path).parent
    level = len(module) - len(module.lstrip("."))
    if level:
        base = here
        for _ in range(level - 1):
            base = base.parent
        relative = base.joinpath(*[part for part in module[level:].split(".") if part])
        return [f"{relative}.py", f"{relative}/__init__.py"]
    inner = "/".join(module.split("."))
    # the checkout may have the package below a folder ("src/vllm/..."): try each parent of the importing file
    roots = ["", *(f"{parent}/" for parent in [here, *here.parents] if str(parent) != ".")]
    return [f"{root}{inner}{ending}" for root in roots for ending in (".py", "/__init__.py")]


class _Extractor:
    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.files: dict[str, _File] = {}
        #: (line or None, text) of what goes into the module; names already handled
        self.pieces: dict[str, tuple[str, int | None, str]] = {}
        self.headers: dict[str, None] = {_HEADER: None}
        self.helpers: list[str] = []
        self.autotune: dict[str, str] = {}

    def file(self, path: str) -> _File | None:
        if path not in self.files:
            text = self.sources(path)
            if text is None:
                return None
            self.files[path] = _File(path, text)
        return self.files[path]

    def add(self, name: str, file: _File, needed_by: str, depth: int = 0) -> None:
        """Makes `name`, as `file` binds it, available in the module."""
        if name in self.pieces or name in _BUILTINS:
            return
        if depth > 12:
            raise Unsupported(f"needs {name}: its imports lead in a circle")
        if name == "HAS_TRITON":
            self.headers.setdefault(_TRITON_MODULES[name])
        elif name in file.functions:
            self._function(name, file, needed_by, depth)
        elif name in file.imports and file.imports[name][0].partition(".")[0] == "triton":
            self._import(name, file, needed_by, depth)  # before a placeholder for machines without Triton
        elif name in file.constants:
            self._constant(name, file, needed_by, depth)
        elif name in file.imports:
            self._import(name, file, needed_by, depth)
        elif name in _TRITON_MODULES:
            self.headers.setdefault(_TRITON_MODULES[name])
        else:
            raise Unsupported(f"needs {name} (used by {needed_by} in {file.path})")

    def _function(self, name: str, file: _File, needed_by: str, depth: int) -> None:
        node = file.functions[name]
        if not is_kernel(node):
            raise Unsupported(f"needs {name}, a plain Python function (used by {needed_by} in {file.path})")
        self.helpers.append(name)
        self.function(node, file, depth)

    def function(self, node: ast.FunctionDef, file: _File, depth: int = 0) -> None:
        """Adds a jit function and everything it mentions."""
        self.pieces[node.name] = (file.path, node.lineno, _function_text(node, file))
        for free in _free_names(node):
            self.add(free, file, node.name, depth + 1)

    def _constant(self, name: str, file: _File, needed_by: str, depth: int) -> None:
        value = file.constants[name]
        for inner in ast.walk(value):
            if isinstance(inner, ast.Name) and inner.id not in _BUILTINS:
                self.add(inner.id, file, name, depth + 1)
            if isinstance(inner, ast.Call) and not ast.unparse(inner.func).startswith(
                ("tl.", "triton.", "float", "int", "constexpr", "min", "max")
            ):
                raise Unsupported(f"needs the value of {name} = {ast.unparse(value)[:60]} (used by {needed_by} in {file.path})")
            if isinstance(inner, (ast.Lambda, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp, ast.Await)):
                raise Unsupported(f"needs the value of {name} = {ast.unparse(value)[:60]} (used by {needed_by} in {file.path})")
        self.pieces[name] = (file.path, file.constant_nodes[name].lineno, f"{name} = {ast.unparse(value)}")

    def _import(self, name: str, file: _File, needed_by: str, depth: int) -> None:
        module, original = file.imports[name]
        short = original or module.rsplit(".", 1)[-1]
        if module == "triton" or module.startswith("triton.") or (short in ("tl", "triton") and original):
            self._triton(name, module, original)
            return
        if original == "libdevice":
            self.headers.setdefault(f"from triton.language.extra import libdevice as {name}")
            return
        if module == "math" or module == "triton":
            self.headers.setdefault(f"import math as {name}" if not original else f"from math import {original} as {name}")
            return
        if not original:
            raise Unsupported(f"needs the module {module} (used by {needed_by} in {file.path})")
        for candidate in module_candidates(module, file.path):
            other = self.file(candidate)
            if other is None or not (original in other.functions or original in other.constants or original in other.imports):
                continue
            self.add(original, other, needed_by, depth + 1)
            if original != name:
                self.pieces[name] = (other.path, None, f"{name} = {original}")
            return
        raise Unsupported(f"needs {original} from {module} (used by {needed_by} in {file.path})")

    def _triton(self, name: str, module: str, original: str) -> None:
        short = original or module
        if short in ("tl",) or (short == "language" and module == "triton"):
            self.headers.setdefault(f"import triton.language as {name}")
        elif short == "triton" and original:
            self.headers.setdefault(f"import triton as {name}")
        elif not original:
            self.headers.setdefault(f"import {module} as {name}" if "." in module or name != module else f"import {module}")
        else:
            self.headers.setdefault(f"from {module} import {original} as {name}")

    def module(self, path: str) -> str:
        """The text of the module: pieces of `path` at their own lines, pieces of other files on line 1 (constants) or at the end."""
        own = [piece for piece in self.pieces.values() if piece[0] == path and piece[1] is not None]
        others = [piece for piece in self.pieces.values() if not (piece[0] == path and piece[1] is not None)]
        first = "; ".join([*self.headers, *[text for _, _, text in others if "\n" not in text]])
        lines = [first]
        for _, line, text in sorted(own, key=lambda piece: piece[1] or 0):
            parts = text.split("\n")
            wanted = max(line or 1, 1) - 1 - sum(part.startswith("@") for part in parts[:8])
            if len(lines) < wanted:
                lines += [""] * (wanted - len(lines))
            lines += parts
        lines += [part for _, _, text in others if "\n" in text for part in ["", *text.split("\n")]]
        return "\n".join(lines) + "\n"


def _function_text(node: ast.FunctionDef, file: _File) -> str:
    """Source of a jit function as top-level code, with one plain decorator and no annotations but constexpr."""
    start, end = node.lineno - 1, node.end_lineno or node.lineno
    body = textwrap.dedent("\n".join(file.lines[start:end]))
    keep = ""
    for decorator in node.decorator_list:
        if "jit" in ast.unparse(decorator) and isinstance(decorator, ast.Call):
            options = [keyword for keyword in decorator.keywords if keyword.arg in ("do_not_specialize", "noinline")]
            keep = ", ".join(f"{option.arg}={ast.unparse(option.value)}" for option in options)
    return (f"@triton.jit({keep})" if keep else "@triton.jit") + "\n" + body


def _autotune(node: ast.FunctionDef) -> dict[str, str]:
    """Constexpr values of the first configuration of @triton.autotune, as source text."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and "autotune" in ast.unparse(decorator.func):
            for inner in ast.walk(decorator):
                if (
                    isinstance(inner, ast.Call)
                    and ast.unparse(inner.func).endswith("Config")
                    and inner.args
                    and isinstance(inner.args[0], ast.Dict)
                ):
                    pairs = zip(inner.args[0].keys, inner.args[0].values, strict=True)
                    return {str(key.value): ast.unparse(value) for key, value in pairs if isinstance(key, ast.Constant)}
            raise Unsupported(f"needs the autotune configurations of {node.name}")
    return {}


def extract(path: str, kernel: str, sources: Sources) -> Kernel:
    """Takes `kernel` out of the file at `path`.

    Imports are followed inside the checkout through `sources`; nothing of it is executed. Raises Unsupported with what is missing.
    """
    worker = _Extractor(sources)
    file = worker.file(path)
    if file is None:
        raise Unsupported(f"needs the file {path}")
    node = file.find(kernel)
    if not is_kernel(node):
        raise Unsupported(f"needs {kernel} to be a Triton kernel; it has no jit decorator")
    worker.function(node, file)
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    positional = [*node.args.posonlyargs, *node.args.args]
    defaults = {
        argument.arg: ast.unparse(value)
        for argument, value in zip(positional[len(positional) - len(node.args.defaults) :], node.args.defaults, strict=True)
    }
    defaults |= {
        argument.arg: ast.unparse(value)
        for argument, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if value is not None
    }
    constexprs = [
        argument.arg for argument in arguments if argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
    ]
    return Kernel(
        name=node.name,
        path=path,
        line=node.lineno,
        params=[argument.arg for argument in arguments],
        constexprs=constexprs,
        defaults=defaults,
        module=worker.module(path),
        helpers=worker.helpers,
        autotune=_autotune(node),
    )
