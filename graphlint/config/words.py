"""Words of a command line with their source spans; parts that only a running system knows stay symbolic."""

from __future__ import annotations

import re
from typing import NamedTuple

#: an unknown part of a value is its source text between these two characters (private use, so never part of a real value)
OPEN, CLOSE = "\ue000", "\ue001"
_UNKNOWN = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")


class Span(NamedTuple):
    """A place in a file, 1-based; the end is exclusive."""

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0


class Word(NamedTuple):
    """One argument. `splat`: an unquoted unknown, which may stand for any number of words."""

    text: str
    span: Span
    splat: bool = False

    @property
    def known(self) -> bool:
        """Whether no part of the text is symbolic."""
        return OPEN not in self.text


def unknown(source: str) -> str:
    """The symbolic value for this source text (`$TP`, `{{ .Values.tp }}`)."""
    return f"{OPEN}{shown(source)}{CLOSE}"


def unknown_names(text: str) -> list[str]:
    """Source texts of the symbolic parts."""
    return list(dict.fromkeys(_UNKNOWN.findall(text)))


def shown(text: str) -> str:
    """The text as a user wrote it."""
    return text.replace(OPEN, "").replace(CLOSE, "")


class Note(NamedTuple):
    """Something about an input that a reader should know: malformed text, a file that is not there, an unknown value."""

    path: str
    line: int
    message: str
    kind: str = "note"


_TEMPLATE = re.compile(r"\{\{-?.*?-?\}\}|\$\{\{.*?\}\}|<[A-Za-z][\w .:/-]*>", re.S)


def mark_templates(text: str) -> str:
    """Turns `{{ ... }}`, `${{ ... }}` and `<placeholders>` into symbolic parts."""
    return _TEMPLATE.sub(lambda m: unknown(m.group(0)), text)
