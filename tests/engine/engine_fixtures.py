"""Small engines of `fixtures/engines`, each correct as it stands, with some of their statements changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ENGINES = Path(__file__).parents[2] / "fixtures" / "engines"


class Reported(NamedTuple):
    """A finding as a reader sees it: the rule, the buffer, and the source line it points at."""

    rule: str
    buffer: str | None
    at: str


class Outcome(NamedTuple):
    """What one run said."""

    reported: list[Reported]
    findings: list[dict]
    errors: list[dict]
    stats: dict

    def one(self) -> dict:
        """The only finding."""
        assert len(self.findings) == 1, self.reported
        return self.findings[0]


def engine_files(name: str, edits: Mapping[str, str] | None = None) -> dict[str, str]:
    """Files of an engine (path -> source), each key of `edits` (found exactly once in all of them) replaced by its value."""
    folder = ENGINES / name
    files = {f"{name}/{path.relative_to(folder).as_posix()}": path.read_text() for path in sorted(folder.rglob("*.py"))}
    assert files, f"no engine {name}"
    for old, new in (edits or {}).items():
        homes = [path for path, text in files.items() for _ in range(text.count(old))]
        assert len(homes) == 1, f"{old!r} is in {homes or 'no file'}"
        files[homes[0]] = files[homes[0]].replace(old, new)
    return files
