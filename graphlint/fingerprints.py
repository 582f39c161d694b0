"""Fingerprints: the identity of a finding across edits that do not concern it. Baselines and code-scanning services match on them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

from graphlint.finding import Finding
from graphlint.source.files import SourceText

#: What marks the root of a project. Paths are hashed relative to it, so that the folder a run starts in does not matter.
ROOT_MARKERS = (".git", "pyproject.toml", "setup.py", "graphlint.toml")


def set_fingerprints(findings: Iterable[Finding], sources: SourceText) -> None:
    """Fill in `fingerprint` of each finding, which must be in output order.

    It is a hash of the rule, the path below the project root, the symbol, the flagged source without its spacing, and the ordinal among
    findings that agree in all of these. Lines do not enter: code may move.
    """
    roots: dict[str, str] = {}
    seen: dict[tuple[str, ...], int] = {}
    for finding in findings:
        key = (finding.rule, _below_root(finding.path, roots), finding.symbol, finding.buffer or "", flagged_source(finding, sources))
        ordinal = seen[key] = seen.get(key, -1) + 1
        digest = hashlib.blake2b("\0".join((*key, str(ordinal))).encode("utf-8", "surrogatepass"), digest_size=10)
        finding.fingerprint = digest.hexdigest()


def flagged_source(finding: Finding, sources: SourceText) -> str:
    """The text of the finding's range (its first line where it has no range), spacing removed."""
    lines = sources.lines(finding.path)
    first, last = finding.line - 1, max(finding.end_line, finding.line) - 1
    if not 0 <= first < len(lines):
        return ""
    picked = lines[first : last + 1]
    if finding.end_line >= finding.line and finding.end_column > 0 and last < len(lines):
        picked[-1] = picked[-1][: finding.end_column - 1]
        picked[0] = picked[0][finding.column - 1 :]
    return "".join("".join(picked).split())


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
