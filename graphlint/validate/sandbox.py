"""Runs a worker module in a child process that cannot harm the machine, and says how it ended.

The child has a wall-time limit, a memory limit, no network, may write only inside its own folder, and lives in a process group of its own
that is killed whole. A crash, a timeout or a memory kill is an outcome, not an error.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from graphlint.validate import processes

if TYPE_CHECKING:
    from graphlint.validate.warm import Forked, WarmJail

Status = Literal["ok", "timeout", "memory", "crash", "denied", "error"]

_POLL_SECONDS = 0.02
#: between two looks at the memory of all processes of a child: RLIMIT_DATA stops a single one at once
_LOOK_SECONDS = 0.15
#: what drivers, compilers and FlashInfer take from the environment
_DEVICE_PREFIXES = ("CUDA_", "NVIDIA_", "NVCC_", "TORCH_CUDA_", "TRITON_", "FLASHINFER_", "CC", "CXX")
#: a CUDA context and the compilers it starts want far more host memory than the interpreter does
CUDA_MEMORY = 24 << 30


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one child may use: wall time in seconds; memory, output and size of one file in bytes."""

    seconds: float = 60.0
    memory: int = 4 << 30
    output: int = 256 << 10
    file_size: int = 64 << 20


class Isolation(msgspec.Struct, frozen=True):
    """What was in force. network: "namespace" or "audit-hook"; files: "landlock" or "audit-hook"; scenarios: "none (trusted code)"."""

    network: str = "unknown"
    files: str = "unknown"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a child ended. `result` is what the worker wrote to result.json (None when it did not get there)."""

    status: Status
    detail: str
    result: dict[str, Any] | None
    seconds: float
    peak_memory: int
    isolation: Isolation
    stdout: str = ""
    stderr: str = ""


class _Tail(threading.Thread):
    """Keeps the first half and the last half of at most `limit` bytes of a pipe; reads the rest and drops it."""

    def __init__(self, pipe: Any, limit: int) -> None:
        super().__init__(daemon=True)
        self._pipe, self._half = pipe, limit // 2
        self._head, self._rest, self._dropped = b"", b"", 0

    def run(self) -> None:
        while chunk := self._pipe.read1(65536):
            room = self._half - len(self._head)
            self._head, chunk = self._head + chunk[:room], chunk[room:]
            self._rest += chunk
            if len(self._rest) > self._half:
                self._dropped += len(self._rest) - self._half
                self._rest = self._rest[-self._half :]

    def text(self) -> str:
        gap = f"\n[{self._dropped} bytes left out]\n".encode() if self._dropped else b""
        return (self._head + gap + self._rest).decode("utf-8", "replace")


def environment(folder: Path, device: str, token: str = "", trusted: bool = False) -> dict[str, str]:
    """The child's environment: home, caches and temporary files inside the folder, one thread, no credentials of the user.

    Trusted code keeps the user's home, because FlashInfer compiles for a quarter of a minute what it then finds there.
    """
    keep = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
    result = {name: os.environ[name] for name in keep if name in os.environ}
    if device == "cuda":
        result |= {name: value for name, value in os.environ.items() if name.startswith(_DEVICE_PREFIXES) and name != "TRITON_INTERPRET"}
    paths = [str(Path(__file__).resolve().parents[2]), *result.get("PYTHONPATH", "").split(os.pathsep)]
    result |= {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_CACHE_HOME": str(folder),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        processes.TOKEN: token,
    }
    if trusted:
        for name in ("HOME", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE"):
            result.pop(name, None)
            if name in os.environ:
                result[name] = os.environ[name]
    if device == "cpu":
        # one thread: nothing here is large, and each thread's stack counts against the memory limit
        result |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return result


def run(
    worker: str, folder: Path, *, limits: Limits | None = None, device: str = "cpu", trusted: bool = False,
    prefix: tuple[str, ...] = (), extra_environment: dict[str, str] | None = None, warm: WarmJail | None = None,
) -> Outcome:
    """Runs `worker` (a module with `main(folder)`) in a child and waits for it.

    `prefix` is a command to run the child under (compute-sanitizer). `trusted` is for code of graphlint itself: limits, network and process
    group as always, but it may start compilers and write its caches. `warm` runs it in a fork of a jail that has the worker imported.
    Never raises for what the child does.
    """
    limits = limits or Limits()
    folder = folder.resolve()
    cuda = device == "cuda"
    config = {
        "folder": str(folder), "worker": worker, "seconds": limits.seconds, "trusted": trusted, "device_writes": cuda,
        # compute-sanitizer talks to the process it watches through sockets
        "own_network": not (trusted and prefix), "memory": 0 if cuda else limits.memory,
        "file_size": max(limits.file_size, 1 << 30) if cuda else limits.file_size,
    }
    ceiling = max(limits.memory, CUDA_MEMORY) if cuda else limits.memory
    # a fork shares its jail's token; it cannot start processes, so its group is all there is
    token = secrets.token_hex(16) if warm is None else ""
    child: subprocess.Popen[bytes] | Forked
    tails: list[_Tail] = []
    if warm is not None:
        child = warm.start(config)
    else:
        child = subprocess.Popen(
            [*prefix, sys.executable, "-m", "graphlint.validate.jail", json.dumps(config)], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            env=environment(folder, device, token, trusted) | (extra_environment or {}),
        )
        tails = [_Tail(child.stdout, limits.output), _Tail(child.stderr, limits.output)]
        for tail in tails:
            tail.start()
    started = time.monotonic()
    verdict, peak = _watch(child, token, limits, ceiling)
    code = child.wait()
    for tail in tails:
        tail.join(5)
    if tails:
        out, err = (tail.text() for tail in tails)
    else:
        out, err = (_read_tail(folder / name, limits.output) for name in ("stdout.txt", "stderr.txt"))
    status, detail = _judge(folder, code, verdict, err, limits, ceiling)
    isolation = msgspec.convert(_read_json(folder / "isolation.json") or {}, Isolation)
    return Outcome(
        status=status, detail=detail, seconds=round(time.monotonic() - started, 3), peak_memory=peak,
        result=_read_json(folder / "result.json"), isolation=isolation, stdout=out, stderr=err,
    )


def _watch(child: subprocess.Popen[bytes] | Forked, token: str, limits: Limits, ceiling: int) -> tuple[str, int]:
    """Waits for the end of a child or ends it. Returns the limit it broke ("" for none) and its peak memory in bytes."""
    started, peak, verdict = time.monotonic(), 0, ""
    used, looked = 0, 0.0
    try:
        while child.poll() is None:
            spent = time.monotonic() - started
            if spent - looked > _LOOK_SECONDS:
                used, looked = processes.memory(processes.family(token, child.pid)), spent
                peak = max(peak, used)
            if used > ceiling or spent > limits.seconds:
                verdict = "memory" if used > ceiling else "timeout"
                break
            time.sleep(_POLL_SECONDS if spent < 2 else 5 * _POLL_SECONDS)
    finally:
        processes.kill(child, token)
    return verdict, peak


def _read_tail(path: Path, limit: int) -> str:
    """The last `limit` bytes of a file of output."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _judge(folder: Path, code: int, verdict: str, stderr: str, limits: Limits, ceiling: int) -> tuple[Status, str]:
    """Status and a sentence, most telling first: refused acts, limits, signals, exceptions."""
    denied = ""
    with contextlib.suppress(OSError):
        denied = (folder / "denied.txt").read_text(encoding="utf-8", errors="replace").split("\n")[0]
    last = next((line for line in reversed(stderr.splitlines()) if line.strip() and not line.startswith(" ")), "")
    if denied:
        return "denied", f"refused by the sandbox: {denied}"
    if verdict == "timeout":
        return "timeout", f"still running after {limits.seconds:g} s"
    if verdict == "memory" or "MemoryError" in stderr or "bad_alloc" in stderr or "DefaultCPUAllocator: can't allocate" in stderr:
        return "memory", f"wanted more than {ceiling >> 20} MiB"
    if code == 0:
        return "ok", ""
    if code < 0 or code > 128:
        number = -code if code < 0 else code - 128
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return ("timeout", "used up its processor time") if name == "SIGXCPU" else ("crash", f"died of {name}")
    return ("crash" if "device-side assert" in stderr or "illegal memory access" in stderr else "error"), last or f"exit status {code}"
