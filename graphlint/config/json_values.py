"""JSON with symbolic parts: values that only a running system knows stay `Symbol`s inside the parsed object."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from graphlint.config.words import CLOSE, OPEN, shown, unknown


class Symbol(NamedTuple):
    """A value that the input does not decide; `text` is its source."""

    text: str

    def __str__(self) -> str:
        return shown(self.text)


def dump_json(value: Any) -> str:
    """JSON text in which symbolic values stand as their source."""
    return json.dumps(value, default=lambda s: s.text, ensure_ascii=False) if not _has_symbol(value) else _dump_symbols(value)


def _has_symbol(value: Any) -> bool:
    if isinstance(value, Symbol):
        return True
    if isinstance(value, dict):
        return any(_has_symbol(v) for v in value.values())
    return isinstance(value, list) and any(_has_symbol(v) for v in value)


def _dump_symbols(value: Any) -> str:
    def plain(v: Any) -> Any:
        if isinstance(v, Symbol):
            return v.text
        if isinstance(v, dict):
            return {k: plain(x) for k, x in v.items()}
        return [plain(x) for x in v] if isinstance(v, list) else v

    return json.dumps(plain(value), ensure_ascii=False)


class BadJson(ValueError):
    """Text that should be JSON and is not."""


def parse_json(text: str, bare: bool = False) -> Any:
    """JSON with symbolic parts. `bare`: text that is no JSON is a plain string (dotted options); otherwise BadJson is raised."""
    if OPEN not in text:
        try:
            return json.loads(text)
        except ValueError as error:
            if "..." in text or "\u2026" in text:
                return Symbol(unknown(text))  # a document that leaves something out
            if bare:
                return text
            raise BadJson(str(error)) from None
    if re.fullmatch(f"{OPEN}[^{CLOSE}]*{CLOSE}", text):
        return Symbol(text)
    quoted, inside, position = "", False, 0
    while position < len(text):
        char = text[position]
        if char == OPEN:
            end = text.index(CLOSE, position) if CLOSE in text[position:] else len(text) - 1
            name = text[position : end + 1].replace("\\", "\\\\").replace('"', '\\"')
            quoted += name if inside else f'"{name}"'
            position = end + 1
            continue
        if char == '"' and text[position - 1 : position] != "\\":
            inside = not inside
        quoted += char
        position += 1
    try:
        return _symbols(json.loads(quoted))
    except ValueError:
        return Symbol(text)


def _symbols(value: Any) -> Any:
    if isinstance(value, str):
        return Symbol(value) if OPEN in value else value
    if isinstance(value, dict):
        return {k: _symbols(v) for k, v in value.items()}
    return [_symbols(v) for v in value] if isinstance(value, list) else value
