"""Options of one run: defaults, the configuration file, the command line, in rising order of precedence."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from graphlint.finding import Confidence, Severity


class ConfigError(Exception):
    """A configuration file that cannot be used; the message names the file and the key."""


def _key(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class FileSettings(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, omit_defaults=True):
    """`[tool.graphlint]` of pyproject.toml, or the top level of graphlint.toml. Paths and patterns are relative to that file's folder."""

    select: Annotated[list[str], _key("Only these rules: ids, family prefixes (GL2), names or ALL.")] = []
    ignore: Annotated[list[str], _key("All rules but these. Where both name a rule, the longer selector wins.")] = []
    severity: Annotated[
        Severity | None, _key("Report nothing milder, and fail at this severity. Without it: report all, fail at warnings.")
    ] = None
    min_confidence: Annotated[Confidence, _key("Report nothing less sure than this.")] = "medium"
    severities: Annotated[dict[str, Severity], _key("Rules (ids, prefixes, names) that are to have another severity than their own.")] = {}
    engine: Annotated[str, _key("Vocabulary to read the code with: auto, vllm, sglang, ...")] = "auto"
    exclude: Annotated[list[str], _key("Files that are never checked, named ones included: patterns as in .gitignore.")] = []
    per_file_ignores: Annotated[dict[str, list[str]], _key("Pattern as in .gitignore -> rules not to report in matching files.")] = {}
    rule_packs: Annotated[list[str], _key("Folders of further rules. Their Python files are executed.")] = []
    baseline: Annotated[str | None, _key("File of known findings that are not reported, written by `graphlint baseline`.")] = None


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
    #: judge the scripts, manifests and documents of a folder too (GL6xx)
    deployments: bool = True
    rule_packs: Sequence[Path] = ()
    respect_gitignore: bool = True
    exclude: Sequence[str] = ()
    per_file_ignores: Mapping[str, Sequence[str]] = {}
    #: rules -> the severity they are to have
    severities: Mapping[str, Severity] = {}
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


def schema() -> dict[str, Any]:
    """JSON schema of graphlint.toml, for editors."""
    document = msgspec.json.schema(FileSettings)
    (body,) = document["$defs"].values()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **body, "title": "graphlint.toml"}


def defaults() -> dict[str, Any]:
    """Every key of a configuration with its default."""
    return {field.encode_name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            for field in msgspec.structs.fields(FileSettings)}


def table_of(path: Path) -> dict[str, Any]:
    """The keys that a configuration file sets. Raises `ConfigError` where it is not TOML, or a key is unknown."""
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
    where = _prefix(path)
    if where:
        table = table.get("tool", {}).get("graphlint", {})
    if not isinstance(table, dict):
        raise ConfigError(f"{shown}: tool.graphlint is not a table")
    known = FileSettings.__struct_encode_fields__
    for key in table:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
            raise ConfigError(f"{shown}: unknown key {where}{key}; {hint}")
    return table


def _prefix(path: Path) -> str:
    return "tool.graphlint." if path.name == "pyproject.toml" else ""


def _read(path: Path) -> FileSettings:
    table = table_of(path)
    try:
        return msgspec.convert(table, FileSettings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{os.path.relpath(path)}: {str(error).replace('$.', _prefix(path))}") from None
