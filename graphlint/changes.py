"""The lines that differ from a git revision, for `--diff-base`."""

from __future__ import annotations

import os
import re
import warnings

import msgspec

from graphlint.finding import Finding

_HUNK = re.compile(r"@@ -\d+(?:,(?P<old>\d+))? \+(?P<start>\d+)(?:,(?P<count>\d+))? @@")
_ESCAPE = re.compile(r'\\([0-7]{3}|[abtnvfr"\\])')
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


class ChangesError(Exception):
    """git is missing, this is no work tree, or the revision does not exist."""


class Changes(msgspec.Struct):
    """Changed lines of each file (absolute path), as inclusive 1-based ranges. An empty list means the whole file is new."""

    files: dict[str, list[tuple[int, int]]]

    def touch(self, finding: Finding) -> bool:
        """Whether the finding's range or a step of its trace lies on a changed line."""
        spots = [(finding.path, finding.line, finding.end_line)]
        spots += [(point.path, point.line, point.end_line) for point in finding.trace]
        return any(self._touched(path, line, max(end, line)) for path, line, end in spots)

    def _touched(self, path: str, first: int, last: int) -> bool:
        ranges = self.files.get(os.path.abspath(path))
        return ranges is not None and (not ranges or any(start <= last and first <= end for start, end in ranges))


def since(revision: str, folder: str = ".") -> Changes:
    """What the work tree (staged, unstaged and untracked files alike) changed since it left `revision`.

    Compared is with the merge base, as pull requests do. Where lines were removed or replaced, every line of the function around them
    counts as changed: the statement that is missing has no line of its own. Raises `ChangesError`.
    """
    if revision.startswith("-"):
        raise ChangesError(f"{revision!r} is no revision")
    root = _git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", failure=f"git knows no revision {revision!r}")
    try:
        base = _git(folder, "merge-base", revision, "HEAD").strip()
    except ChangesError:
        base = revision  # histories without a common commit (a shallow clone): compare with the revision itself
    diff = _git(
        root, "-c", "core.quotePath=false", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-renames", "--src-prefix=a/",
        "--dst-prefix=b/", base, "--", "*.py",
    )
    files = _parse(diff, root)
    for name in _git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", "*.py").split("\0"):
        if name:
            files[os.path.join(root, name)] = []
    return Changes(files)


def _parse(diff: str, root: str) -> dict[str, list[tuple[int, int]]]:
    files: dict[str, list[tuple[int, int]]] = {}
    deletions: dict[str, list[int]] = {}
    path, old_is_null, in_header = "", False, True
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            path, old_is_null, in_header = "", False, True
        elif in_header and line.startswith("--- "):
            old_is_null = line == "--- /dev/null"
        elif in_header and line.startswith("+++ "):
            if line != "+++ /dev/null":
                path = os.path.normpath(os.path.join(root, _unquoted(line[4:])[2:]))
                if old_is_null:
                    files[path] = []
                    path = ""
        elif path and (hunk := _HUNK.match(line)):
            in_header = False
            start, count = int(hunk["start"]), int(hunk["count"] or 1)
            if count:
                files.setdefault(path, []).append((start, start + count - 1))
            if hunk["old"] != "0":
                deletions.setdefault(path, []).append(start)
    for path, places in deletions.items():
        files.setdefault(path, []).extend(_functions_around(path, places))
    return files


def _functions_around(path: str, places: list[int]) -> list[tuple[int, int]]:
    """The innermost function around each place, or the lines beside it where there is none."""
    import ast

    spans: list[tuple[int, int]] = []
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.read())
        spans = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
    except (OSError, SyntaxError, ValueError, RecursionError):
        pass  # reported where the file is analysed
    # a last statement that was deleted leaves its gap at what is the function's last line now
    around = [[(first, last) for first, last in spans if first <= place <= last] for place in places]
    return [max(found) if found else (place, place + 1) for place, found in zip(places, around, strict=True)]


def _unquoted(name: str) -> str:
    """A file name of a diff header: git quotes those with control characters, quotes or backslashes as C does, and ends some in a tab."""
    name = name.rstrip("\t")
    if not name.startswith('"'):
        return name
    raw = bytearray()
    at, text = 0, name[1:-1]
    for match in _ESCAPE.finditer(text):
        raw += text[at : match.start()].encode("utf-8", "surrogateescape")
        raw.append(int(match[1], 8) if match[1].isdigit() else _ESCAPES[match[1]])
        at = match.end()
    raw += text[at:].encode("utf-8", "surrogateescape")
    return raw.decode("utf-8", "surrogateescape")


def _git(folder: str, *arguments: str, failure: str = "") -> str:
    import subprocess  # 6 ms that only --diff-base pays

    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    except OSError as error:
        raise ChangesError(f"--diff-base needs git: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ChangesError(failure or f"git {arguments[0]}: {said[0] if said else f'exit status {done.returncode}'}")
    return done.stdout.decode("utf-8", "surrogateescape")
