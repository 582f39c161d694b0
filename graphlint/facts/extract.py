"""A file's text to its facts."""

from __future__ import annotations

import ast
import re

from graphlint.facts.expr import Expr
from graphlint.facts.functions import FunctionWalker, annotation, quiet, read_params, span_of
from graphlint.facts.jit import is_kernel, sources
from graphlint.facts.model import Class, FileFacts, Function
from graphlint.source.text import split_lines

#: A function whose source has none of these cannot touch a batch extent, a persistent buffer, a graph or a mode.
INTEREST = re.compile(
    r"num_(?:reqs|seqs|tokens?|decodes?|prefills?|actual|input|scheduled|spec|accepted|padded)|batch|_bs\b|\bbs\b|seq_len|query_|indptr|slot_|block_table|"
    r"cuda_?graph|[Gg]raph|capture|replay|padd|\.copy_|\.fill|\.zero_|torch\.(?:empty|zeros|full|ones|arange)|new_(?:empty|zeros|full)|"
    r"data_ptr|idx_mapping|positions|indices|slots|hidden_states|draft|sampl|\]\s*\(|\]\s*=(?!=)|_like\(|\.np\b|\.gpu\b|forward|buf|runner|speculator|__init__"
)


def module_name(path: str) -> str:
    """Dotted module of a posix path: from the outermost folder that looks like a package root (best effort, used to match imports)."""
    parts = path[:-3].split("/") if path.endswith(".py") else path.split("/")
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(part for part in parts if part not in ("", ".", ".."))


def extract(path: str, module: str, tree: ast.Module, text: str) -> FileFacts:
    """Facts of one parsed file."""
    lines = split_lines(text)
    out = _Collector(lines, module, path.endswith("__init__.py"))
    out.module(tree)
    kernels, kernel_text = sources(tree, lines)
    return FileFacts(
        path,
        module,
        tuple(out.imports),
        tuple(out.assigns),
        tuple(out.functions),
        tuple(out.classes),
        kernels,
        kernel_text,
    )


class _Collector:
    def __init__(self, lines: list[str], module: str, package: bool) -> None:
        self.lines = lines
        self.name = module
        self.package = package
        self.imports: list[tuple[str, str, str | None]] = []
        self.assigns: list[tuple[str, Expr]] = []
        self.functions: list[Function] = []
        self.classes: list[Class] = []

    def module(self, tree: ast.Module) -> None:
        self._statements(tree.body, None)

    def add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imports.append(
                    (alias.asname or alias.name.split(".")[0], alias.name if alias.asname else alias.name.split(".")[0], None)
                )
            return
        base = node.module or ""
        if node.level:
            parents = self.name.split(".")
            keep = len(parents) - node.level + (1 if self.package else 0)
            base = ".".join([*parents[: max(keep, 0)], *([base] if base else [])])
        for alias in node.names:
            self.imports.append((alias.asname or alias.name, base, alias.name))

    def _statements(self, body: list[ast.stmt], owner: str | None) -> None:
        for stmt in body:
            if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._function(stmt, owner)
            elif isinstance(stmt, ast.ClassDef):
                self._class(stmt, owner)
            elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
                self.add_import(stmt)
            elif isinstance(stmt, ast.Assign) and owner is None:
                for target in stmt.targets:
                    if isinstance(target, ast.Name):
                        self.assigns.append((target.id, quiet(stmt.value, self.name)))
            elif isinstance(stmt, ast.AnnAssign) and owner is None and isinstance(stmt.target, ast.Name) and stmt.value is not None:
                self.assigns.append((stmt.target.id, quiet(stmt.value, self.name)))
            elif isinstance(stmt, (ast.If, ast.Try, ast.With)):
                for part in (stmt.body, getattr(stmt, "orelse", []), getattr(stmt, "finalbody", [])):
                    self._statements(part, owner)
                for handler in getattr(stmt, "handlers", []):
                    self._statements(handler.body, owner)

    def _class(self, node: ast.ClassDef, owner: str | None) -> None:
        qualname = f"{owner}.{node.name}" if owner else node.name
        fields: list[tuple[str, Expr | None, Expr | None]] = []
        for stmt in node.body:
            if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name):
                fields.append(
                    (stmt.target.id, annotation(stmt.annotation, self.name), None if stmt.value is None else quiet(stmt.value, self.name))
                )
            elif isinstance(stmt, ast.Assign):
                fields.extend((t.id, None, quiet(stmt.value, self.name)) for t in stmt.targets if isinstance(t, ast.Name))
        decorators = tuple(quiet(d, self.name) for d in node.decorator_list)
        self.classes.append(Class(qualname, tuple(quiet(b, self.name) for b in node.bases), tuple(fields), decorators, span_of(node)))
        self._statements(node.body, qualname)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str | None) -> None:
        qualname = f"{owner}.{node.name}" if owner else node.name
        source = "\n".join(self.lines[node.lineno - 1 : node.end_lineno])
        if is_kernel(node) or not INTEREST.search(source):
            decorators = tuple(quiet(d, self.name) for d in node.decorator_list)
            returns = None if node.returns is None else annotation(node.returns, self.name)
            params = read_params(node.args, self.name)
            self.functions.append(Function(qualname, node.name, owner, None, params, returns, decorators, (), (), span_of(node), True))
            return
        self.functions.append(FunctionWalker(self.name, qualname, owner, None, self.functions, self.add_import).run(node, {}))
