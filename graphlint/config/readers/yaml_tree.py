"""YAML (and JSON) with places: scalars, maps and lists that know their line; templates kept as symbolic text; broken documents reported.

ruamel.yaml is imported here and only when a YAML file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphlint.config.words import CLOSE, OPEN, Note, Span, Word, unknown

_CONTROL = re.compile(
    r"^\s*\{\{-?\s*(?:if|else|end|range|with|define|include|template|block|/\*|-|\$|toYaml|tpl)\b.*\}\}\s*$|^\s*\{%.*%\}\s*$"
)
_TEMPLATE = re.compile(r"\$?\{\{.*?\}\}")


@dataclass
class Scalar:
    """A leaf: its text (templates symbolic), the plain value YAML gives it, and where it starts. `block`: a | or > scalar."""

    text: str
    value: Any
    line: int
    column: int
    end_line: int
    end_column: int
    block: bool = False


@dataclass
class Sequence:
    """A list."""

    items: list[Tree]
    line: int


@dataclass
class Mapping:
    """A map in order; merge keys are resolved, the entry's own keys winning."""

    entries: dict[str, Tree] = field(default_factory=dict)
    key_lines: dict[str, int] = field(default_factory=dict)
    line: int = 1

    def get(self, key: str) -> Tree | None:
        """The value under a key, or None."""
        return self.entries.get(key)


Tree = Scalar | Sequence | Mapping


def load_documents(text: str, path: str, line: int = 1) -> tuple[list[Tree], list[Note]]:
    """The documents that parse, and a note at the right line for each that does not."""
    documents: list[Tree] = []
    notes: list[Note] = []
    for offset, chunk in _split(text.replace("\r\n", "\n").replace("\ufeff", "")):
        prepared, templates = _prepare(chunk)
        try:
            node = _compose(prepared)
        except Exception as error:  # noqa: BLE001  the parser raises several kinds; each means this document is malformed
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            problem = str(getattr(error, "problem", None) or error).split("\n")[0]
            at = offset + (mark.line if mark is not None else 0) + line
            hint = " (a tab cannot indent YAML)" if "\\t" in problem or "'\t'" in problem else ""
            notes.append(Note(path, at, f"malformed YAML: {problem}{hint}", "malformed"))
            continue
        if node is not None:
            documents.append(_convert(node, templates, offset + line, {}))
    return documents, notes


def _split(text: str) -> Iterator[tuple[int, str]]:
    """(lines before it, text) of each document, so that a broken one does not hide the others."""
    lines = text.split("\n")
    start = 0
    for index, current in enumerate(lines):
        if index > start and re.match(r"^---(\s|$)", current):
            yield start, "\n".join(lines[start:index])
            start = index
    yield start, "\n".join(lines[start:])


def _prepare(text: str) -> tuple[str, list[str]]:
    """Replaces template expressions by single symbolic tokens and blanks control lines, keeping every line where it is."""
    if "{{" not in text and "{%" not in text:
        return text, []
    templates: list[str] = []

    def token(match: re.Match[str]) -> str:
        templates.append(match.group(0))
        return f"{OPEN}{len(templates) - 1}{CLOSE}"

    lines = ["" if _CONTROL.match(current) else _TEMPLATE.sub(token, current) for current in text.split("\n")]
    return "\n".join(lines), templates


def _compose(text: str) -> Any:
    from ruamel.yaml import YAML

    # the C parser where it is installed (ten times faster), the pure one elsewhere; nothing is constructed, so no tag can run code
    yaml = YAML(typ="safe", pure=False)
    yaml.allow_duplicate_keys = True
    return yaml.compose(text)


def _restore(text: str, templates: list[str]) -> str:
    if not templates:
        return text
    return re.sub(f"{OPEN}(\\d+){CLOSE}", lambda m: unknown(templates[int(m.group(1))]), text)


def _convert(node: Any, templates: list[str], offset: int, seen: dict[int, Tree], depth: int = 0) -> Tree:
    if id(node) in seen:
        return seen[id(node)]
    mark, end = node.start_mark, node.end_mark
    line = mark.line + offset
    kind = type(node).__name__
    if kind == "ScalarNode" or depth > 60:
        value = node.value if isinstance(node.value, str) else ""
        block = node.style in ("|", ">")
        return Scalar(_restore(value, templates), _plain(node), line, mark.column + 1, end.line + offset, end.column + 1, block)
    if kind == "SequenceNode":
        sequence = Sequence([], line)
        seen[id(node)] = sequence
        sequence.items = [_convert(item, templates, offset, seen, depth + 1) for item in node.value]
        return sequence
    mapping = Mapping(line=line)
    seen[id(node)] = mapping
    merged: dict[str, Tree] = {}
    for key, value in node.value:
        if key.tag.endswith(":merge") or key.value == "<<":
            source = _convert(value, templates, offset, seen, depth + 1)
            for one in source.items if isinstance(source, Sequence) else [source]:
                if isinstance(one, Mapping):
                    merged = {**one.entries, **merged}
            continue
        name = _restore(key.value, templates) if isinstance(key.value, str) else str(key.value)
        mapping.entries[name] = _convert(value, templates, offset, seen, depth + 1)
        mapping.key_lines[name] = key.start_mark.line + offset
    mapping.entries = {**merged, **mapping.entries}
    return mapping


def _plain(node: Any) -> Any:
    """The value of a scalar by YAML 1.1 as PyYAML's safe loader reads it: booleans, null, numbers, else text."""
    text = node.value
    if node.style is not None:
        return text
    low = text.lower()
    if low in ("true", "yes", "on"):
        return True
    if low in ("false", "no", "off"):
        return False
    if low in ("", "null", "~"):
        return None
    if re.fullmatch(r"[-+]?\d[\d_]*", text):
        return int(text.replace("_", ""))
    if re.fullmatch(r"[-+]?(\d+\.\d*|\.\d+)([eE][-+]?\d+)?", text):
        return float(text)
    return text


def plain(tree: Tree) -> Any:
    """Python values of a tree; symbolic text stays text."""
    if isinstance(tree, Scalar):
        return tree.text if OPEN in tree.text else tree.value
    if isinstance(tree, Sequence):
        return [plain(item) for item in tree.items]
    return {key: plain(value) for key, value in tree.entries.items()}


def span_of(tree: Tree, path: str) -> Span:
    """Where a tree starts (for scalars: its whole range)."""
    if isinstance(tree, Scalar):
        return Span(path, tree.line, tree.column, tree.end_line, tree.end_column)
    return Span(path, tree.line)


def word_of(tree: Tree, path: str) -> Word:
    """A scalar as one argument."""
    if isinstance(tree, Scalar):
        return Word(tree.text, span_of(tree, path), tree.text.startswith(OPEN) and tree.text.endswith(CLOSE) and tree.text.count(OPEN) == 1)
    import json

    return Word(json.dumps(plain(tree), ensure_ascii=False), span_of(tree, path))
