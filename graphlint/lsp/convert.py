"""From findings to the language server protocol: ranges in the client's units, diagnostics, edits."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from lsprotocol import types
from pygls import uris
from pygls.workspace import PositionCodec

from graphlint.finding import Edit, Finding

SEVERITIES = {
    "error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning, "info": types.DiagnosticSeverity.Information,
}
SOURCE = "graphlint"
Lines = Callable[[str], Sequence[str]]


class Converter:
    """Converts for one client. `lines` gives the lines of a path, as the editor or else the disk has them."""

    def __init__(self, codec: PositionCodec, lines: Lines) -> None:
        self.codec = codec
        self.lines = lines

    def position(self, path: str, line: int, column: int) -> types.Position:
        """A 1-based line and column (in characters), in the client's units."""
        lines = self.lines(path)
        if not 1 <= line <= len(lines):
            return types.Position(max(line - 1, 0), 0)
        return types.Position(line - 1, self.codec.client_num_units(lines[line - 1][: max(column - 1, 0)]))

    def range(self, path: str, line: int, column: int, end_line: int, end_column: int) -> types.Range:
        """A range; where its end is not known, the rest of the line."""
        lines = self.lines(path)
        text = lines[line - 1].rstrip("\r\n") if 1 <= line <= len(lines) else ""
        if column <= 1 and not text[: len(text) - len(text.lstrip())].strip():
            column = max(column, len(text) - len(text.lstrip()) + 1)
        if end_line < line or end_column <= 0 or (end_line == line and end_column <= column):
            end_line, end_column = line, len(text) + 1
        return types.Range(self.position(path, line, column), self.position(path, end_line, end_column))

    def diagnostic(self, finding: Finding) -> types.Diagnostic:
        """A finding, with the steps of its trace as related locations."""
        message = finding.message
        if finding.witness is not None and finding.witness.text:
            message += f"\n{finding.witness.text}"
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(uri_of(point.path), self.range(point.path, point.line, point.column, point.end_line, point.end_column)),
                f"{number}. {point.label}",
            )
            for number, point in enumerate(finding.trace, 1)
        ]
        return types.Diagnostic(
            range=self.range(finding.path, finding.line, finding.column, finding.end_line, finding.end_column), message=message,
            severity=SEVERITIES[finding.severity], code=finding.rule, source=SOURCE, related_information=related or None,
            data={"fingerprint": finding.fingerprint},
        )

    def edits(self, edits: Sequence[Edit]) -> types.WorkspaceEdit:
        """The edits of a fix."""
        changes: dict[str, list[types.TextEdit]] = {}
        for edit in edits:
            span = types.Range(
                self.position(edit.path, edit.line, edit.column), self.position(edit.path, edit.end_line, edit.end_column),
            )
            changes.setdefault(uri_of(edit.path), []).append(types.TextEdit(span, edit.text))
        return types.WorkspaceEdit(changes=changes)

    def suppression(self, finding: Finding) -> types.WorkspaceEdit:
        """A comment above the finding that silences its rule, with room for the reason."""
        lines = self.lines(finding.path)
        text = lines[finding.line - 1] if 1 <= finding.line <= len(lines) else ""
        indent = text[: len(text) - len(text.lstrip())]
        at = types.Position(finding.line - 1, 0)
        edit = types.TextEdit(types.Range(at, at), f"{indent}# graphlint: ignore[{finding.rule}] reason\n")
        return types.WorkspaceEdit(changes={uri_of(finding.path): [edit]})


def uri_of(path: str) -> str:
    """The URI of a path as findings spell it."""
    return uris.from_fs_path(os.path.abspath(path)) or ""


def path_of(uri: str) -> str | None:
    """The absolute path of a `file:` URI of a Python file; None for anything else."""
    path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.normpath(path) if path and path.endswith(".py") else None


def overlaps(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges share a position."""

    def key(position: types.Position) -> tuple[int, int]:
        return position.line, position.character

    return key(one.start) <= key(other.end) and key(other.start) <= key(one.end)
