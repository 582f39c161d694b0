"""Findings with the source text they need, in one JSON file: run them where the checkout is not, such as a machine with a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from graphlint.finding import Finding
from graphlint.validate.extract import Sources


class SavedCase(msgspec.Struct, frozen=True, kw_only=True):
    """One finding. `sources`: path -> text of every file that validation read; `fixed`: the edited texts, if there is a fix."""

    name: str
    finding: Finding
    sources: dict[str, str]
    fixed: dict[str, str] | None = None


class Recorder:
    """A `Sources` that remembers which files were read, to build the `sources` of a saved case."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.read: dict[str, str] = {}

    def __call__(self, path: str) -> str | None:
        """The text of `path`, remembered."""
        text = self._sources(path)
        if text is not None:
            self.read[path] = text
        return text


def record(name: str, finding: Finding, sources: Sources, fixed: Mapping[str, str] | None = None) -> SavedCase:
    """Follows the imports that validation would follow and keeps the texts. Raises extract.Unsupported as `confirm` would say it."""
    from graphlint.validate import confirm, launch
    from graphlint.validate.extract import extract

    recorder = Recorder(sources)
    kernel = extract(finding.path, confirm.kernel_of(finding, recorder), recorder)
    for path in {finding.path, *[point.path for point in finding.trace]}:
        launch.find(path, kernel.name, kernel.params, recorder, kernel.autotune)
    return SavedCase(name=name, finding=finding, sources=recorder.read, fixed=dict(fixed) if fixed else None)


def save(path: Path, cases: list[SavedCase]) -> None:
    """Writes the file that `load` reads."""
    path.write_bytes(msgspec.json.encode({"schema": 1, "cases": cases}))


def load(path: Path) -> list[SavedCase]:
    """Reads saved cases. Raises ValueError naming the file when it is none."""
    try:
        document = msgspec.json.decode(path.read_bytes())
        return msgspec.convert(document["cases"], list[SavedCase])
    except (OSError, msgspec.MsgspecError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a file of saved cases: {error}") from error
