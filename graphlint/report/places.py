"""Paths as code hosts want them: relative to the root of the repository, whatever folder the run started in."""

from __future__ import annotations

import functools
import os
from pathlib import Path


@functools.cache
def repository_root(start: str = "") -> str:
    """The git work tree that holds `start` (default: the current folder); that folder itself outside of one."""
    here = os.path.abspath(start or os.getcwd())
    current = here
    while not os.path.exists(os.path.join(current, ".git")):
        parent = os.path.dirname(current)
        if parent == current:
            return here
        current = parent
    return current


def in_repository(path: str) -> str:
    """`path` relative to the repository's root, with forward slashes; absolute where it lies elsewhere."""
    absolute = os.path.abspath(path)
    root = repository_root(os.getcwd())
    if absolute.startswith(root.rstrip(os.sep) + os.sep):
        return os.path.relpath(absolute, root).replace(os.sep, "/")
    return absolute.replace(os.sep, "/")


def as_uri(path: str, *, folder: bool = False) -> str:
    """A `file:` URI of an absolute path; that of a folder ends in a slash, as a base of others must."""
    uri = Path(path).absolute().as_uri()
    return uri + "/" if folder and not uri.endswith("/") else uri
