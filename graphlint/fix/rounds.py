"""Fixes in rounds: apply what fits together, check again, until nothing is left that a fix can remove."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from graphlint.finding import Finding
from graphlint.fix.apply import one_round

#: fixes that touch each other wait for the next round; a chain longer than this is no longer a fix
MAX_ROUNDS = 10


class Fixed(NamedTuple):
    """New texts by path, the findings that are gone, and those whose fix did not remove them (taken back)."""

    texts: dict[str, str]
    done: list[Finding]
    refused: list[Finding]


def fix_all(
    findings: list[Finding], read: Callable[[str], str], check: Callable[[Mapping[str, str]], list[Finding]], *, unsafe: bool
) -> Fixed:
    """Applies the fixes of `findings`; `check` analyses the files with these texts in place of those on disk and names what is left.

    A fix whose finding is still there afterwards is taken back with the others of its round in the same file, and not tried again.
    """
    texts: dict[str, str] = {}
    done: list[Finding] = []
    refused: dict[tuple[str, str, str], Finding] = {}

    def allowed(finding: Finding) -> bool:
        assert finding.fix is not None
        wanted = ("safe", "unsafe") if unsafe else ("safe",)
        return finding.fix.applicability in wanted and _key(finding) not in refused

    for _ in range(MAX_ROUNDS):
        current = dict(texts)

        def source(path: str, current: dict[str, str] = current) -> str:
            return current[path] if path in current else read(path)

        changed, tried = one_round(findings, source, allowed)
        if not tried:
            break
        left = check({**texts, **changed})
        still = {_key(finding) for finding in left}
        failed = [finding for finding in tried if _key(finding) in still]
        if failed:
            refused.update({_key(finding): finding for finding in failed})
            continue
        texts.update(changed)
        done += tried
        findings = left
    return Fixed(texts, done, list(refused.values()))


def _key(finding: Finding) -> tuple[str, str, str]:
    """What stays the same when lines move."""
    return finding.rule, finding.path, finding.fingerprint or f"{finding.symbol} {finding.message}"


def diff(path: str, before: str, after: str) -> str:
    """Unified diff that `git apply` and `patch -p1` take."""
    name = path.replace(os.sep, "/")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{name}", f"b/{name}")
    )
