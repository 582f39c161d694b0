"""The file: one finding a line, sorted, tab-separated. Lines of two branches may simply be joined (`merge=union`)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from graphlint.finding import Finding
from graphlint.fingerprints import content_key
from graphlint.source.files import SourceText

NAME = "graphlint-baseline.txt"
HEADER = "# graphlint baseline 1: path, rule, symbol, buffer, fingerprint, content. Written by `graphlint baseline`.\n"
_COLUMNS = 6


class BaselineError(Exception):
    """A baseline that cannot be used; the message names the file and the line."""


class Entry(msgspec.Struct, frozen=True, order=True):
    """One finding. `path` is relative to the folder of the file; symbol and buffer are there for the reader only."""

    path: str
    rule: str
    symbol: str
    buffer: str
    fingerprint: str
    content: str

    def absolute(self, file: Path) -> str:
        """The path of the source file, given that of the baseline."""
        return os.path.normpath(os.path.join(file.absolute().parent, self.path))


def entry_of(finding: Finding, sources: SourceText, file: Path) -> Entry:
    """The entry that stands for a finding in the baseline `file`."""
    path = os.path.relpath(os.path.abspath(finding.path), file.absolute().parent).replace(os.sep, "/")
    return Entry(
        path, finding.rule, " ".join(finding.symbol.split()), " ".join((finding.buffer or "").split()), finding.fingerprint,
        content_key(finding, sources),
    )


def read(file: Path) -> list[Entry]:
    """The entries of a baseline. Raises `BaselineError` if it cannot be read or a line is none."""
    shown = os.path.relpath(file)
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        hint = "; `graphlint baseline create` writes one" if isinstance(error, FileNotFoundError) else ""
        raise BaselineError(f"{shown}: cannot read the baseline: {reason}{hint}") from None
    entries = set()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = line.rstrip("\r").split("\t")
        if len(columns) != _COLUMNS:
            hint = "a merge conflict? `graphlint baseline create --force` writes it anew"
            raise BaselineError(f"{shown}:{number}: not a line of a baseline ({hint})")
        entries.add(Entry(*columns))
    return sorted(entries)


def write(file: Path, entries: Iterable[Entry]) -> None:
    """Write a baseline; the old one stays whole if that fails. Raises `BaselineError`."""
    text = HEADER + "".join("\t".join(msgspec.structs.astuple(entry)) + "\n" for entry in sorted(set(entries)))
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(text.encode("utf-8", "surrogatepass"))
        temporary.replace(file)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BaselineError(f"{os.path.relpath(file)}: cannot write the baseline: {error.strerror}") from None
