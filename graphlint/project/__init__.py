"""TODO: placeholder until the engine lands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from graphlint.finding import RunError, Stats
from graphlint.source.files import SourceFile


class Project(msgspec.Struct):
    """Placeholder: no facts."""

    files: list[str]
    errors: list[RunError]
    stats: Stats


def load(files: Sequence[SourceFile], *, jobs: int, cache: bool, engine: str, progress: Callable[[str, int, int], None]) -> Project:
    """Placeholder: parses, so that errors show, and keeps nothing."""
    import ast

    errors = []
    for file in files:
        try:
            ast.parse(file.data)
        except SyntaxError as error:
            errors.append(RunError(file.path, "syntax", error.msg, error.lineno or 0))
    return Project([file.path for file in files], errors, Stats(parsed=len(files)))
