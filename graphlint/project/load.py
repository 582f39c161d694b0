"""Files to a project: facts from the cache where the content is known, from workers where it is not."""

from __future__ import annotations

import ast
import gc
import hashlib
import multiprocessing
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Protocol

from graphlint.facts.cache import Cache, cache_folder, engine_key
from graphlint.facts.extract import extract, module_name
from graphlint.facts.model import FileFacts
from graphlint.facts.wire import decode as decode_facts
from graphlint.facts.wire import encode as encode_facts
from graphlint.finding import RunError, Stats
from graphlint.project.kernels import kernels_of
from graphlint.project.project import Project
from graphlint.source.text import DecodeError, decode

Progress = Callable[[str, int, int], None]
#: fewer uncached bytes than this are parsed in this process: a pool costs more than it saves
POOL_BYTES = 1_500_000
#: larger files are no source that a person wrote
MAX_BYTES = 20_000_000


class Source(Protocol):
    """A file with its bytes."""

    @property
    def path(self) -> str:
        """As findings spell it."""

    @property
    def data(self) -> bytes:
        """Its bytes."""


def load(files: Sequence[Source], *, jobs: int, cache: bool, engine: str, progress: Progress) -> Project:
    """Facts of `files`, joined. A file that cannot be read as Python becomes an error of the project; the others are analysed."""
    stats = Stats(files=len(files))
    errors: list[RunError] = []
    known: list[FileFacts] = []
    store = Cache(cache_folder() / "facts.sqlite") if cache else None
    stamp = engine_key() if cache else b""
    work: list[tuple[str, str, bytes, bytes]] = []
    for file in files:
        module = module_name(os.path.abspath(file.path).replace(os.sep, "/"))
        key = (
            hashlib.blake2b(stamp + module.encode() + b"\0" + file.path.encode() + b"\0" + file.data, digest_size=16).digest()
            if cache
            else b""
        )
        work.append((file.path, module, file.data, key))
    blobs = store.get(item[3] for item in work) if store is not None else {}
    missing: list[tuple[str, str, bytes, bytes]] = []
    for item in work:
        blob = blobs.get(item[3])
        facts = _decoded(blob) if blob is not None else None
        if facts is None:
            missing.append(item)
        else:
            known.append(facts)
            stats.cached += 1
    fresh: list[tuple[bytes, bytes]] = []
    for done, (item, outcome) in enumerate(_extract_all(missing, jobs, store is not None)):
        progress("reading", done, len(missing))
        if isinstance(outcome, RunError):
            errors.append(outcome)
            continue
        if isinstance(outcome, bytes):
            fresh.append((item[3], outcome))
            outcome = decode_facts(outcome)
        stats.parsed += 1
        known.append(outcome)
    if store is not None:
        if fresh:
            store.put(fresh)
        store.close()
    progress("joining", 0, 0)
    return Project(known, engine=engine, errors=errors, stats=stats)


def _decoded(blob: bytes) -> FileFacts | None:
    try:
        return decode_facts(blob)
    except Exception:  # noqa: BLE001  a damaged entry is as good as none
        return None


Outcome = FileFacts | bytes | RunError


def _extract_all(items: list[tuple[str, str, bytes, bytes]], jobs: int, wire: bool) -> list[tuple[tuple[str, str, bytes, bytes], Outcome]]:
    count = jobs or os.cpu_count() or 1
    if count <= 1 or sum(len(item[2]) for item in items) < POOL_BYTES or "fork" not in multiprocessing.get_all_start_methods():
        return [(item, _one(item, wire)) for item in items]
    order = sorted(range(len(items)), key=lambda i: -len(items[i][2]))
    results: dict[int, Outcome] = {}
    global _shared
    _shared = items
    try:
        with multiprocessing.get_context("fork").Pool(count, initializer=gc.disable) as pool:
            for number, outcome in pool.imap_unordered(_by_number, order, chunksize=4):
                results[number] = outcome
    finally:
        _shared = []
    return [(item, results[i]) for i, item in enumerate(items)]


_shared: list[tuple[str, str, bytes, bytes]] = []


def _by_number(number: int) -> tuple[int, Outcome]:
    return number, _one(_shared[number], True)


def _one(item: tuple[str, str, bytes, bytes], wire: bool) -> Outcome:
    facts = file_facts(item[0], item[1], item[2])
    return encode_facts(facts) if wire and isinstance(facts, FileFacts) else facts


def file_facts(path: str, module: str, data: bytes) -> FileFacts | RunError:
    """Facts of one file's bytes, or the error that names file and line."""
    if len(data) > MAX_BYTES:
        return RunError(path, "io", f"file of {len(data)} bytes skipped (limit {MAX_BYTES})")
    try:
        text = decode(data)
    except DecodeError as error:
        return RunError(path, "encoding", str(error), error.line)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        return RunError(path, "syntax", f"does not parse: {error.msg}", error.lineno or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        return RunError(path, "syntax", f"does not parse: {error}")
    try:
        return extract(path, module, tree, text, kernels_of)
    except RecursionError:
        return RunError(path, "internal", "an expression is nested too deeply to analyse")
    except Exception as error:  # noqa: BLE001  one file must not lose the others
        return RunError(path, "internal", f"facts failed: {type(error).__name__}: {error}")
