"""Which files below the given paths may hold deployments, and comments in them that silence findings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from graphlint.config.readers import kind_of
from graphlint.finding import Finding
from graphlint.source.discovery import ENVIRONMENT_MARKERS, SKIPPED_FOLDERS, display_path
from graphlint.source.gitignore import IgnoreStack

#: hidden folders that hold deployments all the same
SHOWN_FOLDERS = frozenset({".github", ".buildkite", ".circleci", ".gitlab", ".devcontainer", ".forgejo"})
#: larger files are data, not configuration
MAX_BYTES = 4_000_000
_COMMENT = re.compile(r"(?P<before>.*?)(?:#|//)\s*graphlint:\s*ignore\b(?:\s*\[(?P<ids>[^\]]*)\])?")


def find_files(paths: Sequence[str]) -> tuple[list[tuple[str, bytes]], list[str]]:
    """(path, bytes) of the files to look at, in order, and the paths that do not exist."""
    here = os.getcwd()
    found: dict[str, str] = {}
    missing: list[str] = []
    for path in paths:
        absolute = os.path.normpath(os.path.join(here, path))
        if os.path.isdir(absolute):
            for file in _walk(absolute):
                found.setdefault(file, display_path(file, here))
        elif os.path.exists(absolute):
            found.setdefault(absolute, display_path(path, here))
        else:
            missing.append(path)
    out: list[tuple[str, bytes]] = []
    for absolute, shown in sorted(found.items(), key=lambda item: item[1]):
        try:
            data = _read(absolute)
        except OSError:
            missing.append(shown)
            continue
        if data is not None:
            out.append((shown, data))
    return out, missing


def _read(path: str) -> bytes | None:
    with open(path, "rb") as handle:
        data = handle.read(MAX_BYTES + 1)
    return data if len(data) <= MAX_BYTES else None


def _walk(root: str) -> Iterator[str]:
    pending: list[tuple[str, IgnoreStack | None]] = [(root, IgnoreStack.above(root))]
    while pending:
        folder, ignored = pending.pop()
        try:
            with os.scandir(folder) as entries:
                listing = list(entries)
        except OSError:
            continue
        names = {entry.name for entry in listing}
        if folder != root and not ENVIRONMENT_MARKERS.isdisjoint(names):
            continue
        if ignored is not None and ".gitignore" in names:
            ignored = ignored.push(folder)
        for entry in listing:
            if entry.is_dir(follow_symlinks=False):
                hidden = entry.name.startswith(".") and entry.name not in SHOWN_FOLDERS
                if not hidden and entry.name not in SKIPPED_FOLDERS and (ignored is None or not ignored.ignores_folder(entry.path)):
                    pending.append((entry.path, ignored))
            elif entry.is_file() and kind_of(entry.name, b"#!/bin/sh" if "." not in entry.name else b"") is not None:
                yield entry.path


class Silencers:
    """`# graphlint: ignore[GL602] reason` in any file: on the finding's line, alone on the line above, or at the head of its command."""

    def __init__(self, text: str) -> None:
        self._ids: dict[int, tuple[str, ...]] = {}
        if "graphlint:" not in text:
            return
        for number, line in enumerate(text.split("\n"), 1):
            match = _COMMENT.search(line)
            if match:
                ids = tuple(part.strip().upper() for part in (match["ids"] or "").split(",") if part.strip())
                self._ids[number] = ids
                if not match["before"].strip():
                    self._ids.setdefault(number + 1, ids)

    def silences(self, finding: Finding, head: int | None = None) -> bool:
        """Whether a comment speaks for the finding; `head` is the line of its server command."""
        for line in (finding.line, finding.end_line, head):
            if line in self._ids:
                ids = self._ids[line]
                if not ids or any(finding.rule.startswith(one) for one in ids):
                    return True
        return False
