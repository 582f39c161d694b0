"""`.gitignore` semantics over a tree: patterns of nested files, where the deepest file that says something wins."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class IgnoreStack:
    """The `.gitignore` files that apply in one folder, deepest first."""

    def __init__(self, specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()) -> None:
        self._specs = specs

    @classmethod
    def above(cls, folder: str) -> IgnoreStack:
        """The files that apply to `folder` from the folders above it, up to the root of the git work tree (none outside of one)."""
        chain: list[str] = []
        current = folder
        while not os.path.exists(os.path.join(current, ".git")):
            parent = os.path.dirname(current)
            if parent == current:
                return cls()
            chain.append(parent)
            current = parent
        stack = cls()
        for parent in reversed(chain):
            stack = stack.push(parent)
        return stack

    def push(self, folder: str) -> IgnoreStack:
        """This stack with the `.gitignore` of `folder` on top, if it has a readable one."""
        try:
            with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
        except OSError:
            return self
        from pathspec import GitIgnoreSpec  # 35 ms: only trees that have such a file pay it

        patterns = [line for line in lines if line.strip() and not line.startswith("#")]
        spec = GitIgnoreSpec.from_lines(_valid(patterns))
        return IgnoreStack(((folder.rstrip(os.sep) + os.sep, spec), *self._specs))

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether git would leave out this absolute path (the folders above it were found not to be)."""
        for prefix, spec in self._specs:
            relative = path[len(prefix) :] + ("/" if is_folder else "")
            verdict = spec.check_file(relative).include
            if verdict is not None:
                return verdict
        return False


def _valid(patterns: list[str]) -> list[str]:
    """The patterns that pathspec understands: git skips a malformed line, so one must not end the run."""
    from pathspec import GitIgnoreSpec

    kept = []
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            continue
        kept.append(pattern)
    return kept
