"""Facts, project and rules in one step, with the outcome kept for the next run over the same content."""

from __future__ import annotations

import gc
import hashlib
import os
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from graphlint.facts.cache import Cache, cache_folder, engine_key
from graphlint.finding import Finding, RunError, Stats

if TYPE_CHECKING:
    from graphlint.registry import RuleEntry
    from graphlint.source.files import SourceFile

Progress = Callable[[str, int, int], None]


class Analysis(msgspec.Struct):
    """Raw outcome of the rules over a set of files: nothing suppressed, filtered or ordered yet."""

    findings: list[Finding] = []
    errors: list[RunError] = []
    parsed: int = 0
    cached: int = 0
    #: rules that raised
    crashed: list[str] = []
    #: the engine itself failed: no rule has run
    failed: bool = False

    @property
    def stats(self) -> Stats:
        """Counts for the report."""
        return Stats(parsed=self.parsed, cached=self.cached)


def analyse(
    files: Sequence[SourceFile], entries: Sequence[RuleEntry], *, jobs: int, cache: bool, engine: str, progress: Progress,
) -> Analysis:
    """Run the rules of `entries` over `files`. A crash of one rule or file is an error of the outcome; the rest still comes out."""
    store = Cache(cache_folder() / "results.sqlite") if cache else None
    key = _key(files, entries, engine) if store is not None else b""
    try:
        if store is not None:
            known = _read(store.get([key]).get(key))
            if known is not None:
                known.cached, known.parsed = len(files), 0
                return known
        outcome = _run(files, entries, jobs, cache, engine, progress)
        if store is not None and not outcome.failed and not outcome.crashed:
            store.put([(key, msgspec.msgpack.encode(outcome))])
        return outcome
    finally:
        if store is not None:
            store.close()


def _read(blob: bytes | None) -> Analysis | None:
    if blob is None:
        return None
    try:
        return msgspec.msgpack.decode(blob, type=Analysis)
    except msgspec.DecodeError:
        return None


def _key(files: Sequence[SourceFile], entries: Sequence[RuleEntry], engine: str) -> bytes:
    """Everything the outcome depends on: the engine, the rules, and each file's name and content."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(_code_key() + engine.encode())
    for entry in entries:
        info = entry.path.stat()
        digest.update(f"{entry.rule.id}\0{entry.path}\0{info.st_size}\0{info.st_mtime_ns}\0".encode())
    for file in files:
        digest.update(f"{file.path}\0{os.path.abspath(file.path)}\0{len(file.data)}\0".encode())
        digest.update(file.data)
    return digest.digest()


@lru_cache
def _code_key() -> bytes:
    stamp = hashlib.blake2b(engine_key(), digest_size=12)
    root = Path(__file__).resolve().parent
    for path in sorted([*root.glob("*.py"), *(root / "project").glob("*.py"), *(root / "extents").rglob("*.*")]):
        info = path.stat()
        stamp.update(f"{path.name}{info.st_size}{info.st_mtime_ns}".encode())
    return stamp.digest()


def _run(files: Sequence[SourceFile], entries: Sequence[RuleEntry], jobs: int, cache: bool, engine: str, progress: Progress) -> Analysis:
    # Facts are many small tuples that live to the end: collecting garbage meanwhile costs a third of the time and frees nothing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _checked(files, entries, jobs, cache, engine, progress)
    finally:
        if collecting:
            gc.enable()


def _checked(
    files: Sequence[SourceFile], entries: Sequence[RuleEntry], jobs: int, cache: bool, engine: str, progress: Progress,
) -> Analysis:
    from graphlint import project as engine_module

    try:
        project = engine_module.load(files, jobs=jobs, cache=cache, engine=engine, progress=progress)
    except Exception as error:  # noqa: BLE001  the report must come out whatever fails
        return Analysis(errors=[RunError("", "internal", f"the project could not be analysed: {describe(error)}")], failed=True)
    outcome = Analysis(errors=list(project.errors), parsed=project.stats.parsed, cached=project.stats.cached)
    for number, entry in enumerate(entries):
        progress(f"checking {entry.rule.id}", number, len(entries))
        produced: Iterable[Finding] = ()
        try:
            produced = entry.rule.check(project)  # type: ignore[arg-type,misc]
            for finding in produced:
                outcome.findings.append(finding)
        except Exception as error:  # noqa: BLE001  one rule's fault must not lose the others' findings
            outcome.errors.append(RunError("", "rule", f"{entry.rule.id} {entry.rule.name} crashed: {describe(error)}"))
            outcome.crashed.append(entry.rule.id)
    return outcome


def describe(error: BaseException) -> str:
    """An exception and where it was raised, in one line."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    where = f" ({os.path.basename(frames[0].filename)}:{frames[0].lineno}, in {frames[0].name})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"
