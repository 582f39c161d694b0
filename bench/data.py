"""Reading the bench's TOML files into typed structs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TypeVar

import msgspec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

BENCH = Path(__file__).resolve().parent


def read_toml(path: Path, into: type[T]) -> T:
    """The file as `into`; ValueError with the file's name when it is not TOML or does not fit."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(raw, into)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"{path}: {error}") from error
