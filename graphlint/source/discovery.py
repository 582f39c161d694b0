"""Which files a run looks at: `.py` files below the given folders, in a fixed order, minus what git ignores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphlint.source.gitignore import SUFFIX, IgnoreStack

#: Folders that never hold the code of the project itself. Hidden folders and virtual environments are skipped as well.
SKIPPED_FOLDERS = frozenset({"__pycache__", "__pypackages__", "node_modules"})
#: A folder that holds one of these is a virtual or conda environment.
ENVIRONMENT_MARKERS = frozenset({"pyvenv.cfg", "conda-meta"})


class Discovery(NamedTuple):
    """The files to look at (spelled as findings will spell them), and the given paths that do not exist."""

    files: list[str]
    missing: list[str]
    #: explicit paths that hold no Python file at all
    empty: list[str]


def display_path(path: str, cwd: str) -> str:
    """`path` as findings spell it: relative to `cwd` where it lies below, else as given; forward slashes."""
    absolute = os.path.normpath(os.path.join(cwd, path))
    prefix = cwd.rstrip(os.sep) + os.sep
    shown = absolute[len(prefix) :] if absolute.startswith(prefix) else os.path.normpath(path)
    return shown.replace(os.sep, "/")


def discover(paths: Sequence[str], *, respect_gitignore: bool = True, cwd: str | None = None) -> Discovery:
    """Python files named by or below `paths`, sorted by path.

    A file that is named is always taken. Below a folder, hidden folders, virtual environments, `node_modules` and what `.gitignore`
    files exclude (nested ones, and those above up to the root of the git work tree) are left out. Links to folders are not followed,
    as git does not; a linked file is taken unless its target is found too.
    """
    here = os.getcwd() if cwd is None else cwd
    found: dict[str, str] = {}
    links: list[tuple[str, str]] = []
    missing: list[str] = []
    empty: list[str] = []
    for path in paths:
        absolute = os.path.normpath(os.path.join(here, path))
        if os.path.isdir(absolute):
            anything = False
            for file, is_link in _walk(absolute, respect_gitignore):
                anything = True
                shown = display_path(file if os.path.isabs(path) else os.path.join(path, file[len(absolute) :].lstrip(os.sep)), here)
                if is_link:
                    links.append((file, shown))
                else:
                    found.setdefault(file, shown)
            if not anything:
                empty.append(path)
        elif os.path.exists(absolute):
            found.setdefault(absolute, display_path(path, here))
        else:
            missing.append(path)
    for file, shown in links:
        found.setdefault(os.path.realpath(file), shown)
    return Discovery(sorted(set(found.values())), missing, empty)


def _walk(root: str, respect_gitignore: bool) -> Iterator[tuple[str, bool]]:
    """(absolute path, is a link) of the Python files below `root`."""
    ignore = IgnoreStack.above(root) if respect_gitignore else None
    pending: list[tuple[str, IgnoreStack | None]] = [(root, ignore)]
    while pending:
        folder, ignored = pending.pop()
        try:
            with os.scandir(folder) as entries:
                listing = list(entries)
        except OSError:
            continue  # unreadable folder, or removed meanwhile: nothing that could be checked
        names = {entry.name for entry in listing}
        if folder != root and not ENVIRONMENT_MARKERS.isdisjoint(names):
            continue
        if ignored is not None and ".gitignore" in names:
            ignored = ignored.push(folder)
        for entry in listing:
            name = entry.name
            if name.endswith(SUFFIX) and entry.is_file():
                if ignored is None or not ignored.ignores_file(entry.path):
                    yield entry.path, entry.is_symlink()
            elif (
                not name.startswith(".")
                and name not in SKIPPED_FOLDERS
                and entry.is_dir(follow_symlinks=False)
                and (ignored is None or not ignored.ignores_folder(entry.path))
            ):
                pending.append((entry.path, ignored))
