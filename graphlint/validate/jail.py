"""Runs one worker under limits: `python -m graphlint.validate.jail CONFIG`. Standard library only, before anything else is imported.

With {"serve": WORKER} it stays, and runs each CONFIG line of its standard input in a fork: torch is imported once for many kernels.
CONFIG is JSON: {"folder", "worker", "memory", "seconds", "file_size", "trusted", "device_writes", "own_network"}. The worker is
the name of a module with `main(folder)`. In order: resource limits, an own network namespace, Landlock (writes only inside the folder),
the worker's imports, and, for code that is not trusted, an audit hook that refuses sockets, processes and foreign libraries. What is in
force is written to `isolation.json`, what was refused to `denied.txt`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import struct
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_DUMPABLE = 1, 38, 4
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
#: Landlock rights that change the file system: write, remove, make, refer, truncate. Reading and executing stay as they are.
_FS_CHANGE_V1 = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
_FS_WRITE_FILE, _FS_REFER, _FS_TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_O_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: compilers that Triton itself starts for a CUDA device
_COMPILERS = ("gcc", "cc", "c++", "g++", "clang", "ptxas", "ptxas-blackwell", "ldconfig", "ld", "nvcc", "ninja", "file")


class Denied(PermissionError):
    """Untrusted code asked for something outside its sandbox."""


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def limit_resources(memory: int, seconds: float, file_size: int) -> None:
    """Caps heap and anonymous maps (bytes; 0: leave), processor time, file size; no core files; dies with its parent."""
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, file_size)
    # wall time is the parent's business; this holds when the parent is gone
    _limit(resource.RLIMIT_CPU, int(seconds) * max(1, os.cpu_count() or 1) + 5)
    if memory:
        # not RLIMIT_AS: torch maps gigabytes of libraries that cost no memory
        _limit(resource.RLIMIT_DATA, memory)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)


def leave_network() -> str:
    """Moves into a network namespace without interfaces. Returns what is in force: "namespace" or "audit-hook"."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) == 0:
        return "namespace"
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return "audit-hook"
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        # the namespace holds without the maps; only the names of users are lost
        with contextlib.suppress(OSError), open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    return "namespace"


def confine_writes(folder: str, device_writes: bool) -> str:
    """Lets this process change files below `folder` only. Returns what is in force: "landlock" or "audit-hook"."""
    libc = ctypes.CDLL(None, use_errno=True)
    abi = int(libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, 1))
    if abi < 1:
        return "audit-hook"
    rights = _FS_CHANGE_V1 | (_FS_REFER if abi >= 2 else 0) | (_FS_TRUNCATE if abi >= 3 else 0)
    attributes = struct.pack("=Q", rights)
    ruleset = int(libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))
    if ruleset < 0:
        return "audit-hook"
    writable = [(folder, rights)] + [(path, _FS_WRITE_FILE) for path in ("/dev/null", "/dev/zero", "/dev/tty")]
    if device_writes:
        # a CUDA driver opens its device nodes and shared memory for writing, and names its threads
        writable += [("/dev", rights), ("/proc/self", _FS_WRITE_FILE | (rights & _FS_TRUNCATE))]
    file_rights = _FS_WRITE_FILE | (rights & _FS_TRUNCATE)
    try:
        for path, allowed in writable:
            try:
                handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            if not os.path.isdir(path):
                allowed &= file_rights
            libc.syscall(_LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", allowed, handle), 0)
            os.close(handle)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0) != 0:
            return "audit-hook"
    finally:
        os.close(ruleset)
    return "landlock"


def _audit(folder: str, denied: Callable[[str], None], compile_allowed: bool) -> Callable[[str, tuple[Any, ...]], None]:
    inside = os.path.realpath(folder) + os.sep
    harmless = ("/dev/null", "/dev/zero")
    busy = False

    def path_of(value: object) -> str | None:
        if isinstance(value, int):
            return None
        return os.path.realpath(os.fsdecode(value))  # type: ignore[arg-type]

    def foreign(value: object) -> bool:
        path = path_of(value)
        if path is None or path in harmless or (path + os.sep).startswith(inside):
            return False
        return not (compile_allowed and path.startswith(("/dev/", "/proc/self/")))

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal busy
        if busy:
            return
        busy = True
        try:
            reason = None
            if event == "open":
                path, mode, flags = args[0], args[1], args[2]
                writes = (isinstance(flags, int) and flags & _O_WRITE) or (isinstance(mode, str) and set(mode) & set("wax+"))
                if writes and path is not None and foreign(path):
                    reason = f"write to {path_of(path)}"
            elif event in ("os.rename", "os.link", "os.symlink"):
                if foreign(args[0]) or foreign(args[1]):
                    reason = f"{event} {args[0]} -> {args[1]}"
            elif event in ("os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.chown", "shutil.rmtree", "os.utime"):
                if args and foreign(args[0]):
                    reason = f"{event} {args[0]}"
            elif event.startswith("socket.") and event != "socket.gethostname":
                reason = event
            elif event in ("subprocess.Popen", "os.posix_spawn", "os.exec"):
                if not (compile_allowed and os.path.basename(os.fsdecode(args[0] or args[1][0])) in _COMPILERS):
                    reason = f"start of {args[0]}"
            elif event in ("os.fork", "os.forkpty"):
                if not compile_allowed:
                    reason = event
            elif event in ("os.system", "os.kill", "os.killpg", "pty.spawn", "signal.pthread_kill"):
                reason = event
            elif event in ("ctypes.dlopen", "ctypes.dlsym/handle") and not compile_allowed:
                reason = f"library {args[0]}"
            if reason:
                denied(reason)
                raise Denied(f"refused by the sandbox: {reason}")
        finally:
            busy = False

    return hook


def lock_down(folder: str, compile_allowed: bool) -> None:
    """From here on, refuse sockets, processes, foreign libraries and writes outside of `folder`. Cannot be undone."""
    log = os.open(os.path.join(folder, "denied.txt"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def denied(reason: str) -> None:
        os.write(log, (reason[:300].replace("\n", " ") + "\n").encode("utf-8", "replace"))

    sys.addaudithook(_audit(folder, denied, compile_allowed))


def _enclose(config: dict[str, Any], network: str) -> None:
    """Limits and walls of one child; says in isolation.json which hold."""
    folder, trusted = config["folder"], config["trusted"]
    os.chdir(folder)
    limit_resources(config["memory"], config["seconds"], config["file_size"])
    force = {
        "network": "none (trusted code)" if trusted and network == "audit-hook" else network,
        "files": "none (trusted code)" if trusted else confine_writes(folder, config["device_writes"]),
    }
    with open(os.path.join(folder, "isolation.json"), "w", encoding="utf-8") as file:
        json.dump(force, file)


def _worker(name: str) -> ModuleType:
    """Imports a worker and all it needs, before the door closes."""
    worker = importlib.import_module(name)
    prepare = getattr(worker, "prepare", None)
    if prepare is not None:
        prepare()
    return worker


def serve(name: str) -> int:
    """Keeps a worker imported and forks a child for each CONFIG line on standard input; answers its pid, then its exit code."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    network = leave_network()
    worker = _worker(name)
    for line in sys.stdin:
        config = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os._exit(_forked(config, worker, network))
        print(pid, flush=True)  # noqa: T201 - the protocol
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)  # noqa: T201
    return 0


def _forked(config: dict[str, Any], worker: ModuleType, network: str) -> int:
    """One child of `serve`: a session, environment and output files of its own. Returns its exit code."""
    try:
        os.setsid()
        os.environ.update(config["environment"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, file in ((1, "stdout.txt"), (2, "stderr.txt")):
            os.dup2(os.open(os.path.join(config["folder"], file), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        _enclose(config, network)
        lock_down(config["folder"], config["device_writes"])
        worker.main(config["folder"])
    except BaseException:  # noqa: BLE001 - whatever it was, it is told on stderr and ends this process
        traceback.print_exc()
        return 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
    return 0


def main(argument: str) -> int:
    """Applies the limits of CONFIG, imports the worker, runs it."""
    config = json.loads(argument)
    if "serve" in config:
        return serve(config["serve"])
    _enclose(config, leave_network() if config["own_network"] else "audit-hook")
    worker = _worker(config["worker"])
    if not config["trusted"]:
        lock_down(config["folder"], config["device_writes"])
    worker.main(config["folder"])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
