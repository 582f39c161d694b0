"""Output formats: one module a format, imported when it is used.

A format is a module of this package with `FOR_PEOPLE: bool` (colour and a statistics table may join it) and
`render(outcome, *, color) -> str`. Its name on the command line is the module's, once it is listed here.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from graphlint.runner import Outcome

FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit", "markdown", "html")


class Format(Protocol):
    """What a module of a format offers."""

    FOR_PEOPLE: bool

    def render(self, outcome: Outcome, *, color: bool) -> str:
        """The whole output, ending in a newline unless it is empty."""
        ...


def available() -> list[str]:
    """Names of the formats that this installation has."""
    return [name for name in FORMATS if importlib.util.find_spec(f"{__name__}.{name}") is not None]


def load(name: str) -> Format:
    """The module of a format."""
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))
