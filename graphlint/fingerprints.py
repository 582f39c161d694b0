"""Fingerprints: the identity of a finding across edits that do not concern it. Baselines and code-scanning services match on them."""

from __future__ import annotations

import ast
import hashlib
import os
import textwrap
import warnings
from collections.abc import Iterable

from graphlint.finding import Finding
from graphlint.source.files import SourceText

#: What marks the root of a project. Paths are hashed relative to it, so that the folder a run starts in does not matter.
ROOT_MARKERS = (".git", "pyproject.toml", "setup.py", "graphlint.toml")
#: fields of syntax trees that say nothing about what the code does
_IDLE_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def set_fingerprints(findings: Iterable[Finding], sources: SourceText) -> None:
    """Fill in `fingerprint` of each finding, which must be in output order.

    It is a hash of the rule, the path below the project root, the symbol, the flagged source as `flagged_source` has it, and the ordinal
    among findings that agree in all of these. Lines do not enter: code may move. The message and the trace do not either: neighbours may
    be renamed.
    """
    roots: dict[str, str] = {}
    seen: dict[tuple[str, ...], int] = {}
    for finding in findings:
        key = (finding.rule, _below_root(finding.path, roots), finding.symbol, finding.buffer or "", flagged_source(finding, sources))
        ordinal = seen[key] = seen.get(key, -1) + 1
        finding.fingerprint = _digest(*key, str(ordinal))


def content_key(finding: Finding, sources: SourceText) -> str:
    """As the fingerprint, but without the file, the class and the ordinal: what stays the same when a function moves elsewhere."""
    return _digest(finding.rule, finding.symbol.rpartition(".")[2], finding.buffer or "", flagged_source(finding, sources))


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=10).hexdigest()


def flagged_source(finding: Finding, sources: SourceText) -> str:
    """The text of the finding's range (its first line where it has no range), in a form that does not depend on its layout.

    That is the syntax tree where the range is a statement, an expression or the head of a block: line breaks, quotes, trailing commas,
    redundant parentheses and comments do not count. Of anything else only the spacing is removed.
    """
    lines = sources.lines(finding.path)
    first, last = finding.line - 1, max(finding.end_line, finding.line) - 1
    if not 0 <= first < len(lines):
        return ""
    picked = lines[first : last + 1]
    if finding.end_line >= finding.line and finding.end_column > 0 and last < len(lines):
        picked[-1] = picked[-1][: finding.end_column - 1]
        picked[0] = " " * (finding.column - 1) + picked[0][finding.column - 1 :]
    text = textwrap.dedent("\n".join(picked)).strip()
    for candidate in (f"({text}\n)", text, f"{text}\n    pass"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(candidate)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return _shape(tree)
    return "".join(text.split())


def _shape(node: object) -> str:
    """A syntax tree as text. Not `ast.dump`, whose form differs between versions of Python."""
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name not in _IDLE_FIELDS)
        return f"{type(node).__name__}({','.join(f'{name}={_shape(value)}' for name, value in fields if value not in (None, []))})"
    if isinstance(node, list):
        return f"[{','.join(map(_shape, node))}]"
    return repr(node)


def _below_root(path: str, roots: dict[str, str]) -> str:
    absolute = os.path.abspath(path)
    folder = os.path.dirname(absolute)
    if folder not in roots:
        current = folder
        while not any(os.path.exists(os.path.join(current, marker)) for marker in ROOT_MARKERS):
            parent = os.path.dirname(current)
            if parent == current:
                current = ""
                break
            current = parent
        roots[folder] = current
    root = roots[folder]
    return (os.path.relpath(absolute, root) if root else path).replace(os.sep, "/")
