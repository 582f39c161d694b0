"""Deployments beside the code: `graphlint check` on a folder also judges its scripts, manifests and documents (GL6xx)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from graphlint import __version__
from graphlint.facts.cache import Cache, cache_folder
from graphlint.finding import Finding, RunError
from graphlint.source.discovery import display_path
from graphlint.source.files import read_file

_SUFFIXES = (".yaml", ".yml", ".sh", ".bash", ".md", ".mdx", ".rst")
_SKIPPED = frozenset({"node_modules", "venv", "site-packages", "__pycache__", "build", "dist"})
#: a file without one of these starts no server
_TOKENS = (b"vllm", b"sglang")
_MAX_BYTES = 2_000_000
_REFERENCE = b"--config"


def deployment_findings(paths: Sequence[str], wanted: Collection[str], *, cache: bool) -> tuple[list[Finding], list[RunError], int]:
    """Findings of the deployment rules in `wanted` on the files below `paths`, what could not be read, and how many files were.

    Python files are left to `graphlint config`: reading every one for `LLM(...)` costs more than the rest of a check.
    """
    if not any(rule.startswith("GL6") for rule in wanted):
        return [], [], 0
    files = [(path, data) for path, data in _files(paths) if any(token in data for token in _TOKENS)]
    if not files:
        return [], [], 0
    # `--config FILE` names a file that may lie anywhere: what such a file comes to is not kept
    alone = [one for one in files if _REFERENCE not in one[1]]
    other = [one for one in files if _REFERENCE in one[1]]
    outcomes = [_kept(alone, wanted) if cache else _judged(alone, wanted), _judged(other, wanted)]
    return (
        [finding for outcome in outcomes for finding in outcome.findings],
        [error for outcome in outcomes for error in outcome.errors],
        sum(outcome.read for outcome in outcomes),
    )


class _Outcome(msgspec.Struct):
    """What some files came to: findings, what could not be read, and how many files hold a deployment."""

    findings: list[Finding] = []
    errors: list[RunError] = []
    read: int = 0


def _judged(files: Sequence[tuple[str, bytes]], wanted: Collection[str]) -> _Outcome:
    if not files:
        return _Outcome()
    from graphlint.config.check import Options, check_files
    from graphlint.config.discover import Silencers

    result = check_files(files, Options())
    silencers = {path: Silencers(text) for path, text in result.texts.items()}
    kept = [
        finding
        for finding in result.findings
        if finding.rule in wanted and not (finding.path in silencers and silencers[finding.path].silences(finding))
    ]
    return _Outcome(kept, result.errors, len(result.texts))


def _kept(files: Sequence[tuple[str, bytes]], wanted: Collection[str]) -> _Outcome:
    """`_judged`, or what it said of the same files the last time."""
    from graphlint.config.pack import built_in_folder

    here = Path(__file__).resolve().parent
    stamp = hashlib.blake2b(f"{__version__}\0{sorted(wanted)}\0{os.getcwd()}\0".encode(), digest_size=16)
    for path in sorted([*here.glob("*.py"), *(here / "config").rglob("*.*"), *built_in_folder().glob("*.py")]):
        if "__pycache__" not in path.parts:
            info = path.stat()
            stamp.update(f"{path.name}{info.st_size}{info.st_mtime_ns}".encode())
    for name, data in files:
        stamp.update(f"{name}\0{len(data)}\0".encode("utf-8", "surrogatepass") + data)
    key = stamp.digest()
    store = Cache(cache_folder() / "results.sqlite")
    try:
        blob = store.get([key]).get(key)
        if blob is not None:
            try:
                return msgspec.msgpack.decode(blob, type=_Outcome)
            except msgspec.DecodeError:
                pass  # a damaged entry is as good as none
        outcome = _judged(files, wanted)
        store.put([(key, msgspec.msgpack.encode(outcome))])
        return outcome
    finally:
        store.close()


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
