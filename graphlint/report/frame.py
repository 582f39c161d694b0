"""Code frames: source lines of one or more files with labelled spans under them, in the style of rustc."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

import msgspec

TAB = "    "
#: longer source lines are cut to a window around the span
MAX_WIDTH = 140
ELLIPSIS = "..."


class Label(msgspec.Struct, frozen=True):
    """A span with what to say about it. Lines and columns are 1-based; `end_column` 0 means the end of the line."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    primary: bool


Style = Callable[[str, str], str]


def frame(labels: Sequence[Label], lines_of: Callable[[str], list[str]], style: Style) -> list[str]:
    """The frame's lines. The primary label's file comes first, other files as they appear; lines ascend within a file.

    `style(kind, text)` paints: kinds are `gutter`, `primary`, `label` and `place`.
    """
    primary = next(label for label in labels if label.primary)
    paths = list(dict.fromkeys([primary.path, *(label.path for label in labels)]))
    width = max(len(str(label.line)) for label in labels)
    out = [f"{' ' * width}{style('gutter', '-->')} {style('place', f'{primary.path}:{primary.line}:{primary.column}')}"]
    bar = style("gutter", "|")
    for path in paths:
        here = sorted((one for one in labels if one.path == path), key=lambda one: (one.line, one.column))
        if path != primary.path:
            out.append(f"{' ' * width}{style('gutter', ':::')} {style('place', f'{path}:{here[0].line}:{here[0].column}')}")
        out.append(f"{' ' * width} {bar}")
        source = lines_of(path)
        previous = 0
        for label in here:
            if not 1 <= label.line <= len(source):
                out.append(f"{label.line:>{width}} {bar} {label.text}")
                continue
            raw = source[label.line - 1]
            shown, start, length = _cut(raw, label)
            if label.line != previous:
                if previous and label.line > previous + 1:
                    out.append(style("gutter", "...") if label.line > previous + 2 else _plain(previous + 1, width, bar, source, style))
                out.append(f"{style('gutter', f'{label.line:>{width}}')} {bar} {shown}".rstrip())
            previous = label.line
            kind, mark = ("primary", "^") if label.primary else ("label", "-")
            marks = style(kind, f"{mark * length} {label.text}".rstrip())
            out.append(f"{' ' * width} {bar} {' ' * start}{marks}")
    return out


def _plain(number: int, width: int, bar: str, source: list[str], style: Style) -> str:
    """One source line that no label points at (it joins two that are)."""
    text = source[number - 1].replace("\t", TAB)[:MAX_WIDTH]
    return f"{style('gutter', f'{number:>{width}}')} {bar} {text}".rstrip()


def _cut(raw: str, label: Label) -> tuple[str, int, int]:
    """The line as shown, and the display column (0-based) and length of the label's marks in it."""
    to_line_end = label.end_line > label.line or label.end_column <= 0
    first = min(max(label.column - 1, 0), len(raw))
    if to_line_end and not raw[:first].strip():
        first = len(raw) - len(raw.lstrip())  # a whole statement: its indentation is not part of it
    last = max(len(raw.rstrip()) if to_line_end else min(label.end_column - 1, len(raw)), first + 1)
    prefix = ""
    if len(raw) > MAX_WIDTH and last > MAX_WIDTH:
        skip = max(first - MAX_WIDTH // 4, 0)
        raw, first, last, prefix = raw[skip:], first - skip, last - skip, ELLIPSIS
    if len(raw) > MAX_WIDTH:
        raw = raw[:MAX_WIDTH] + ELLIPSIS
        last = max(min(last, MAX_WIDTH), first + 1)
    start = len(prefix) + _width(raw[:first])
    return prefix + raw.replace("\t", TAB), start, max(_width(raw[first:last]), 1)


def _width(text: str) -> int:
    """Columns that a terminal gives the text."""
    if text.isascii():
        return len(text) + text.count("\t") * (len(TAB) - 1)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide + text.count("\t") * (len(TAB) - 1) - sum(unicodedata.combining(char) > 0 for char in text)
