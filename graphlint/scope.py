"""Which files a run reports on, and which it only reads to understand them.

A hook names the few files of a commit, but a fault lies between files: the writer in one, the reader in another. So where files are named,
the rest of their project is read too (from the cache of facts, as far as it has not changed), and nothing is reported there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from graphlint.settings import CheckOptions
from graphlint.source.discovery import Discovery, discover
from graphlint.source.files import SourceFile, minimal_tokens, read_file


class Scope(msgspec.Struct, frozen=True):
    """What was found of the paths given, and the files to report on: those that are not excluded."""

    discovery: Discovery
    targets: list[str]


def find_scope(paths: Sequence[str], options: CheckOptions) -> Scope:
    """The files named by or below `paths`, spelled as findings spell them."""
    discovery = discover(paths, respect_gitignore=options.respect_gitignore)
    return Scope(discovery, _without_excluded(discovery.files, options))


def find_context(
    paths: Sequence[str], scope: Scope, options: CheckOptions, given: Sequence[SourceFile], tokens: Iterable[bytes]
) -> list[str]:
    """The other files of the project where single files are checked; none where `paths` are folders.

    None either if no file to report on holds one of the rules' `tokens`: nothing can be found in those, whatever the rest says. `given`
    are files whose bytes are at hand; they are reported on too.
    """
    if not options.context or any(os.path.isdir(path) for path in paths):
        return []
    at_hand = [file.path for file in given]
    named = [*scope.targets, *at_hand]
    if not named or not _holds_any({*named}, given, minimal_tokens(tokens)):
        return []
    roots = sorted({root for path in named if (root := project_root(path, options)) is not None})
    around = discover(roots, respect_gitignore=options.respect_gitignore).files if roots else []
    known = {os.path.abspath(path) for path in {*scope.discovery.files, *at_hand}}
    return _without_excluded([path for path in around if os.path.abspath(path) not in known], options)


def _holds_any(paths: Iterable[str], given: Sequence[SourceFile], tokens: Sequence[bytes]) -> bool:
    at_hand = {file.path: file.data for file in given}
    for path in paths:
        try:
            data = at_hand[path] if path in at_hand else read_file(path)
        except OSError:
            continue  # reported when the file is collected
        if any(token in data for token in tokens):
            return True
    return False


def project_root(path: str, options: CheckOptions) -> str | None:
    """The folder of the configuration or the git work tree that holds `path`, whichever is nearer; outside of both the outermost package.

    None for a file that belongs to no package either. A home folder that is a work tree is no project.
    """
    folder = os.path.dirname(os.path.abspath(path))
    configured = None if options.root is None else os.path.abspath(options.root)
    home = str(Path.home())
    package = None
    in_package = True
    while True:
        if folder == configured or (folder != home and os.path.exists(os.path.join(folder, ".git"))):
            return folder
        in_package = in_package and os.path.exists(os.path.join(folder, "__init__.py"))
        if in_package:
            package = folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return package
        folder = parent


def matching(paths: Iterable[str], patterns: Sequence[str], options: CheckOptions) -> set[str]:
    """Those of `paths` that one of the patterns (as in .gitignore, relative to the configuration's folder) matches."""
    if not patterns:
        return set()
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(patterns)
    return {path for path in paths if spec.match_file(os.path.relpath(path, options.base))}


def _without_excluded(paths: list[str], options: CheckOptions) -> list[str]:
    excluded = matching(paths, options.exclude, options)
    return [path for path in paths if path not in excluded]
