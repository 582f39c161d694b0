"""One file in the light of the package it belongs to."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from graphlint.project.describe import describe_project, render
from graphlint.project.load import load
from graphlint.source.discovery import discover
from graphlint.source.files import SourceFile, collect

#: files with none of these say nothing about batches, buffers or graphs
TOKENS = (
    b"num_reqs",
    b"num_tokens",
    b"raw_bs",
    b"cudagraph",
    b"cuda_graph",
    b"CUDAGraph",
    b"triton.jit",
    b"query_start_loc",
    b"seq_lens",
    b"block_table",
)


def package_root(path: str) -> str:
    """The outermost folder above `path` that is a package, or the file's own folder."""
    folder = Path(path).resolve().parent
    root = folder
    while (root / "__init__.py").exists() and root.parent != root:
        root = root.parent
    return str(root if root == folder else next((p for p in (folder, *folder.parents) if p.parent == root), folder))


def describe(file: SourceFile, line: int | None, *, engine: str = "auto", output_format: str = "text") -> str:
    """What the engine believes of `file`, with its package as context: text or JSON."""
    root = package_root(file.path)
    here = os.path.abspath(file.path)
    others = [path for path in discover([root]).files if os.path.abspath(path) != here]
    collected = collect(others, TOKENS)
    project = load([file, *collected.files], jobs=0, cache=True, engine=engine, progress=lambda *_: None)
    described = describe_project(project, file.path, line)
    own = [error for error in project.errors if error.path == file.path]
    if output_format == "json":
        data = msgspec.to_builtins(described)
        data["errors"] = [msgspec.to_builtins(error) for error in own]
        return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    return "\n".join([*(f"{error.path}:{error.line}: {error.message}" for error in own), render(described)])
