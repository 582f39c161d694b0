"""Options of one run: defaults, the configuration file, the command line, in rising order of precedence."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from graphlint.finding import Confidence, Severity


class ConfigError(Exception):
    """A configuration file that cannot be used; the message names the file and the key."""


class FileSettings(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, omit_defaults=True):
    """`[tool.graphlint]` of pyproject.toml, or the top level of graphlint.toml. Paths and patterns are relative to that file's folder."""

    select: list[str] = []
    ignore: list[str] = []
    severity: Severity | None = None
    min_confidence: Confidence = "medium"
    engine: str = "auto"
    #: files that are never checked, named ones included: patterns as in .gitignore
    exclude: list[str] = []
    #: pattern as in .gitignore -> rules not to report in matching files
    per_file_ignores: dict[str, list[str]] = {}
    #: folders of further rules; their Python files are executed
    rule_packs: list[str] = []
    #: file of known findings that are not reported, written by `graphlint baseline`
    baseline: str | None = None


class CheckOptions(msgspec.Struct, kw_only=True):
    """What `graphlint check` was asked to do."""

    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    #: report nothing milder than this; None: report all, fail at warnings
    severity: Severity | None = None
    min_confidence: Confidence = "medium"
    #: auto, or the name of an engine vocabulary
    engine: str = "auto"
    #: 0: as many as there are cores
    jobs: int = 0
    cache: bool = True
    rule_packs: Sequence[Path] = ()
    respect_gitignore: bool = True
    exclude: Sequence[str] = ()
    per_file_ignores: Mapping[str, Sequence[str]] = {}
    #: the folder that `exclude` and `per_file_ignores` are relative to
    base: Path = Path()
    #: the folder of the configuration file, if there is one
    root: Path | None = None
    #: whether the rest of the project is read where single files are checked
    context: bool = True
    #: findings listed in this file are not reported
    baseline: Path | None = None
    #: report only findings that touch a line changed since this git revision
    diff_base: str | None = None

    @property
    def failing_severity(self) -> Severity:
        """Findings at or above this make the exit status 1."""
        return self.severity or "warning"


def find_config(start: Path) -> Path | None:
    """The nearest graphlint.toml, or pyproject.toml with a `[tool.graphlint]` table, in `start` or a folder above it.

    Never looked for beside the files under check: a configuration can name rule packs, which are code.
    """
    for folder in (start, *start.parents):
        if (own := folder / "graphlint.toml").is_file():
            return own
        shared = folder / "pyproject.toml"
        if shared.is_file() and b"[tool.graphlint" in shared.read_bytes():
            return shared
    return None


def options(config: Path | None, given: Mapping[str, Any]) -> CheckOptions:
    """The options of a run: those of `config`, overridden by those in `given` that are not None.

    Raises `ConfigError` where the file is not valid, or there is no vocabulary of the engine.
    """
    if config is None:
        merged: dict[str, Any] = {}
    else:
        settings = _read(config)
        base = config.parent
        merged = {field: getattr(settings, field) for field in FileSettings.__struct_fields__}
        merged |= {"rule_packs": tuple(base / pack for pack in settings.rule_packs), "base": base, "root": base}
        merged["baseline"] = None if settings.baseline is None else base / settings.baseline
    chosen = CheckOptions(**(merged | {key: value for key, value in given.items() if value is not None}))
    if chosen.engine != "auto" and chosen.engine not in (known := engines()):
        raise ConfigError(f"there is no vocabulary of an engine {chosen.engine!r}; choose from auto, {', '.join(known)}")
    return chosen


def engines() -> list[str]:
    """Names of the engines that have a vocabulary."""
    from graphlint.extents.vocabulary import DATA

    return sorted(file.stem for file in DATA.glob("*.toml") if file.stem != "common")


def _read(path: Path) -> FileSettings:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    shown = os.path.relpath(path)
    try:
        with path.open("rb") as file:
            table: Any = tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{shown}: not valid TOML: {error}") from None
    where = ""
    if path.name == "pyproject.toml":
        table, where = table.get("tool", {}).get("graphlint", {}), "tool.graphlint."
    known = FileSettings.__struct_encode_fields__
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
            raise ConfigError(f"{shown}: unknown key {where}{key}; {hint}")
    try:
        return msgspec.convert(table, FileSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{shown}: {str(error).replace('$.', where)}") from None
