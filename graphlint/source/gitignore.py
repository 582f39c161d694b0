"""`.gitignore` semantics over a tree: patterns of nested files, where the deepest file that says something wins."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SUFFIX = ".py"
_LITERAL_END = re.compile(r"[^*?\[\]\\/]*$")


class _Level(NamedTuple):
    """The patterns of one `.gitignore`: those for folders, and those of them that can match a Python file."""

    prefix: str
    folders: GitIgnoreSpec
    files: GitIgnoreSpec


class IgnoreStack:
    """The `.gitignore` files that apply in one folder, deepest first."""

    def __init__(self, levels: tuple[_Level, ...] = ()) -> None:
        self._levels = levels

    @classmethod
    def above(cls, folder: str) -> IgnoreStack:
        """The files that apply to `folder` from the folders above it, up to the root of the git work tree (none outside of one).

        A folder that is named although git ignores it is searched: then the files above it do not count.
        """
        chain = []
        current = folder
        while not os.path.exists(os.path.join(current, ".git")):
            current, below = os.path.dirname(current), current
            if current == below:
                return cls()
            chain.append(current)
        stack = cls()
        for parent in reversed(chain):
            stack = stack.push(parent)
        return cls() if stack.ignores_folder(folder) else stack

    def push(self, folder: str) -> IgnoreStack:
        """This stack with the `.gitignore` of `folder` on top, if it has a readable one."""
        try:
            with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
                patterns = [line.rstrip() for line in file if line.strip() and not line.startswith("#")]
        except OSError:
            return self
        level = _Level(folder.rstrip(os.sep) + os.sep, _spec(patterns), _spec([p for p in patterns if _can_match_python_file(p)]))
        return IgnoreStack((level, *self._levels))

    def ignores_file(self, path: str) -> bool:
        """Whether git would leave out the Python file of this absolute path (none of the folders above it being ignored)."""
        for level in self._levels:
            verdict = level.files.check_file(path[len(level.prefix) :]).include
            if verdict is not None:
                return verdict
        return False

    def ignores_folder(self, path: str) -> bool:
        """Whether git would leave out the folder of this absolute path."""
        for level in self._levels:
            verdict = level.folders.check_file(path[len(level.prefix) :] + "/").include
            if verdict is not None:
                return verdict
        return False


def _can_match_python_file(pattern: str) -> bool:
    """Whether the name a pattern ends in can end in `.py`: most patterns cannot, and matching costs more than anything else here."""
    ending = _LITERAL_END.search(pattern)
    assert ending is not None
    literal = ending[0]
    return not pattern.endswith("/") and (literal.endswith(SUFFIX) or SUFFIX.endswith(literal))


def _spec(patterns: list[str]) -> GitIgnoreSpec:
    """The patterns, compiled; git skips a malformed line, so one must not end the run."""
    from pathspec import GitIgnoreSpec  # 35 ms: only trees that have a .gitignore pay it

    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError:
        return GitIgnoreSpec.from_lines([pattern for pattern in patterns if _is_valid(pattern)])


def _is_valid(pattern: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([pattern])
    except ValueError:
        return False
    return True
