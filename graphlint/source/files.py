"""Reading, and the byte prefilter that decides which files are worth parsing."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

import msgspec

from graphlint.finding import RunError
from graphlint.source.text import DecodeError, decode, split_lines

#: what makes a comment one of ours: files that hold it are looked at for suppressions even if no rule cares about them
MARKER = b"graphlint:"


class SourceFile(msgspec.Struct, frozen=True):
    """A file to check: `path` as findings spell it, and its bytes."""

    path: str
    data: bytes


class Collected(msgspec.Struct):
    """What was read of a tree. `files` hold a token of some rule; `marked` hold none, but a comment that addresses graphlint."""

    files: list[SourceFile]
    marked: list[SourceFile]
    errors: list[RunError]


def read_file(path: str) -> bytes:
    """All bytes of a file. One unbuffered read: mmap is slower at the size of source files."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        parts = []
        while chunk := os.read(fd, max(os.fstat(fd).st_size + 1, 65536)):
            parts.append(chunk)
    finally:
        os.close(fd)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def token_pattern(tokens: Iterable[bytes]) -> re.Pattern[bytes] | None:
    """One pattern that finds any of `tokens`; None (every file passes) where a token is empty or there are none."""
    unique = set(tokens)
    if not unique or b"" in unique:
        return None
    # a token that contains another one can never decide alone
    needed = sorted(t for t in unique if not any(o != t and o in t for o in unique))
    return re.compile(b"|".join(map(re.escape, needed)))


def collect(paths: Sequence[str], tokens: Iterable[bytes], *, given: Sequence[SourceFile] = ()) -> Collected:
    """Read `paths` and keep the files that hold one of `tokens`. `given` are files whose bytes are at hand (standard input)."""
    pattern = token_pattern(tokens)
    out = Collected([], [], [])
    at_hand = {file.path: file for file in given}
    for path in sorted({*paths, *at_hand}):
        file = at_hand.get(path)
        if file is None:
            try:
                file = SourceFile(path, read_file(path))
            except OSError as error:
                out.errors.append(RunError(path, "io", f"cannot read the file: {error.strerror or error}"))
                continue
        if pattern is None or pattern.search(file.data):
            out.files.append(file)
        elif MARKER in file.data:
            out.marked.append(file)
    return out


class SourceText:
    """Lines of files, read when asked for and kept: code frames, fingerprints and suppressions share one copy."""

    def __init__(self, given: Iterable[SourceFile] = ()) -> None:
        self._given = {file.path: file.data for file in given}
        self._lines: dict[str, list[str]] = {}

    def lines(self, path: str) -> list[str]:
        """Lines of `path`; none where it cannot be read or decoded (that is reported where the file is analysed)."""
        known = self._lines.get(path)
        if known is None:
            try:
                data = self._given.get(path)
                known = split_lines(decode(read_file(path) if data is None else data))
            except (OSError, DecodeError):
                known = []
            self._lines[path] = known
        return known
