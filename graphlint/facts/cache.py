"""The facts cache: one sqlite file in the user's cache folder, keyed by content, module and engine version."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
from collections.abc import Iterable
from pathlib import Path

from graphlint import __version__

#: raised when the form of the facts changes
FORMAT = 8
#: entries not used for this long are dropped when the file grows past `_LIMIT` bytes
_LIMIT = 400 * 1024 * 1024


def cache_folder() -> Path:
    """Folder of all caches: `$GRAPHLINT_CACHE_DIR`, else `$XDG_CACHE_HOME/graphlint`, else `~/.cache/graphlint`."""
    explicit = os.environ.get("GRAPHLINT_CACHE_DIR")
    if explicit:
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphlint"


def engine_key() -> bytes:
    """What facts depend on besides the source: the versions of graphlint, of their form, of Python's grammar, and the engine's code."""
    root = Path(__file__).resolve().parent.parent
    stamp = hashlib.blake2b(f"{__version__}/{FORMAT}/{sys.version_info[:2]}".encode(), digest_size=12)
    for folder in ("facts", "kernel_models"):
        for path in sorted((root / folder).glob("*.py")):
            info = path.stat()
            stamp.update(f"{path.name}{info.st_size}{info.st_mtime_ns}".encode())
    return stamp.digest()


class Cache:
    """Blobs by key. Trouble with the file (locked, damaged, read-only folder) turns the cache off for this run, never the run itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = self._open()
        except (OSError, sqlite3.Error):
            self._db = None

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=2.0)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=OFF")
            db.execute("CREATE TABLE IF NOT EXISTS blobs (key BLOB PRIMARY KEY, data BLOB) WITHOUT ROWID")
        except sqlite3.DatabaseError:
            db.close()
            self.path.unlink(missing_ok=True)
            db = sqlite3.connect(self.path, timeout=2.0)
            db.execute("CREATE TABLE IF NOT EXISTS blobs (key BLOB PRIMARY KEY, data BLOB) WITHOUT ROWID")
        return db

    def get(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The blobs that are there."""
        found: dict[bytes, bytes] = {}
        if self._db is None:
            return found
        wanted = list(keys)
        try:
            for start in range(0, len(wanted), 500):
                part = wanted[start : start + 500]
                marks = ",".join("?" * len(part))
                found.update(self._db.execute(f"SELECT key, data FROM blobs WHERE key IN ({marks})", part))
        except sqlite3.Error:
            return {}
        return found

    def put(self, blobs: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep blobs."""
        if self._db is None:
            return
        try:
            if self.path.exists() and self.path.stat().st_size > _LIMIT:
                with self._db:
                    self._db.execute("DELETE FROM blobs")
                self._db.execute("VACUUM")
            with self._db:
                self._db.executemany("INSERT OR REPLACE INTO blobs VALUES (?, ?)", blobs)
        except (OSError, sqlite3.Error):
            self._db = None

    def close(self) -> None:
        """Release the file."""
        if self._db is not None:
            self._db.close()
            self._db = None
