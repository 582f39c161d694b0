"""Files to a project: facts from the cache where the content is known, from workers where it is not."""

from __future__ import annotations

import ast
import hashlib
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
from graphlint.project.pool import spread
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
    work: list[Work] = []
    for file in files:
        module = module_name(os.path.abspath(file.path).replace(os.sep, "/"))
        key = (
            hashlib.blake2b(stamp + module.encode() + b"\0" + file.path.encode() + b"\0" + file.data, digest_size=16).digest()
            if cache
            else b""
        )
        work.append((file.path, module, file.data, key))
    blobs = store.get(item[3] for item in work) if store is not None else {}
    missing: list[Work] = []
    for item in work:
        blob = blobs.get(item[3])
        facts = _decoded(blob) if blob is not None else None
        if facts is None:
            missing.append(item)
        else:
            known.append(facts)
            stats.cached += 1
    fresh: list[tuple[bytes, bytes]] = []
    sizes = [len(item[2]) for item in missing]
    for done, (number, outcome) in enumerate(spread(_facts if store is None else _encoded, missing, sizes, jobs, POOL_BYTES)):
        progress("reading", done, len(missing))
        if isinstance(outcome, RunError):
            errors.append(outcome)
            continue
        if isinstance(outcome, bytes):
            fresh.append((missing[number][3], outcome))
            outcome = decode_facts(outcome)
        stats.parsed += 1
        known.append(outcome)
    if store is not None:
        if fresh:
            store.put(fresh)
        store.close()
    progress("joining", 0, 0)
    errors.sort(key=lambda error: error.path)  # they come as workers finish
    return Project(known, engine=engine, errors=errors, stats=stats, jobs=jobs, cache=cache)


def _decoded(blob: bytes) -> FileFacts | None:
    try:
        return decode_facts(blob)
    except Exception:  # noqa: BLE001  a damaged entry is as good as none
        return None


#: path, module, bytes, key
Work = tuple[str, str, bytes, bytes]
Outcome = FileFacts | bytes | RunError


def _facts(item: Work) -> Outcome:
    return file_facts(item[0], item[1], item[2])


def _encoded(item: Work) -> Outcome:
    facts = _facts(item)
    return encode_facts(facts) if isinstance(facts, FileFacts) else facts


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
        return extract(path, module, tree, text)
    except RecursionError:
        return RunError(path, "internal", "an expression is nested too deeply to analyse")
    except Exception as error:  # noqa: BLE001  one file must not lose the others
        return RunError(path, "internal", f"facts failed: {type(error).__name__}: {error}")
