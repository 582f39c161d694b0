"""Deployments beside the code: `graphlint check` on a folder also judges its scripts, manifests and documents (GL6xx)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from graphlint.finding import Finding, RunError
from graphlint.source.discovery import display_path
from graphlint.source.files import read_file

_SUFFIXES = (".yaml", ".yml", ".sh", ".bash", ".md", ".mdx", ".rst")
_SKIPPED = frozenset({"node_modules", "venv", "site-packages", "__pycache__", "build", "dist"})
#: a file without one of these starts no server
_TOKENS = (b"vllm", b"sglang")
_MAX_BYTES = 2_000_000


def deployment_findings(paths: Sequence[str], wanted: Collection[str]) -> tuple[list[Finding], list[RunError], int]:
    """Findings of the deployment rules in `wanted` on the files below `paths`, what could not be read, and how many files were.

    Python files are left to `graphlint config`: reading every one for `LLM(...)` costs more than the rest of a check.
    """
    if not any(rule.startswith("GL6") for rule in wanted):
        return [], [], 0
    files = [(path, data) for path, data in _files(paths) if any(token in data for token in _TOKENS)]
    if not files:
        return [], [], 0
    from graphlint.config.check import Options, check_files
    from graphlint.config.discover import Silencers

    result = check_files(files, Options())
    silencers = {path: Silencers(text) for path, text in result.texts.items()}
    kept = [
        finding
        for finding in result.findings
        if finding.rule in wanted and not (finding.path in silencers and silencers[finding.path].silences(finding))
    ]
    return kept, result.errors, len(result.texts)


def _files(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    here = os.getcwd()
    for path in sorted({os.path.abspath(path) for path in paths}):
        for file in _walk(path) if os.path.isdir(path) else [path]:
            if not _is_configuration(file):
                continue
            try:
                data = read_file(file) if os.stat(file).st_size <= _MAX_BYTES else b""
            except OSError:
                continue  # the check itself reports what it cannot read
            yield display_path(file, here), data


def _is_configuration(path: str) -> bool:
    name = os.path.basename(path)
    return name.endswith(_SUFFIXES) or name.startswith(("Dockerfile", "Containerfile"))


def _walk(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        yield from (os.path.join(root, name) for name in sorted(names))
