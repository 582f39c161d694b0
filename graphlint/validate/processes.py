"""The processes of one sandboxed child: finding them, their memory, and killing all of them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Protocol

#: environment variable that marks a child and all it starts, also those that leave its process group
TOKEN = "GRAPHLINT_SANDBOX"
_GONE = (ProcessLookupError, PermissionError)


def family(token: str, group: int) -> list[int]:
    """Live processes of the child: its group, and any that left the group but still carry its token. No token: a child that cannot fork."""
    if not token:
        return [group] if _belongs(Path(f"/proc/{group}"), b"", group) else []
    mark = f"{TOKEN}={token}".encode()
    root = Path("/proc")
    entries = [entry for entry in root.iterdir() if entry.name.isdigit()] if root.is_dir() else []
    return [int(entry.name) for entry in entries if int(entry.name) != os.getpid() and _belongs(entry, mark, group)]


def _belongs(entry: Path, mark: bytes, group: int) -> bool:
    try:
        fields = (entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        if fields[0] == "Z":
            return False
        return int(fields[2]) == group or mark in (entry / "environ").read_bytes().split(b"\0")
    except (OSError, IndexError, ValueError):
        return False


def memory(pids: list[int]) -> int:
    """Resident bytes without pages shared with files (those are the libraries)."""
    return sum(_private(pid) for pid in pids)


def _private(pid: int) -> int:
    try:
        _, resident, shared = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


class Child(Protocol):
    """What is asked of a child: its pid (also that of its group), and whether it has ended."""

    pid: int

    def poll(self) -> int | None:
        """Exit code, or None while it runs."""
        ...


def kill(process: Child, token: str) -> None:
    """Kills the whole group, then whatever still carries the token, until none is left."""
    for _ in range(50):
        with contextlib.suppress(*_GONE):
            os.killpg(process.pid, signal.SIGKILL)
        left = family(token, process.pid)
        for pid in left:
            with contextlib.suppress(*_GONE):
                os.kill(pid, signal.SIGKILL)
        process.poll()
        if not left:
            return
        time.sleep(0.02)
