"""A jail that has torch and Triton imported already and forks a child for each kernel, so that many findings pay for the imports once."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from graphlint.validate.sandbox import environment


class _Server:
    """The process of `jail.serve`. Its answers are lines with one number; read unbuffered, since `select` sees no buffer of ours."""

    def __init__(self, worker: str, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "graphlint.validate.jail", json.dumps({"serve": worker})],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0, start_new_session=True,
            env=environment(folder, "cpu"),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._questions, self._answers = self.process.stdin, self.process.stdout
        self._rest = b""

    def ask(self, question: dict[str, Any]) -> None:
        """Sends one CONFIG line."""
        self._questions.write(json.dumps(question).encode() + b"\n")

    def answer(self, wait: bool) -> int | None:
        """The next number; None when there is none yet and `wait` is false. A server that is gone took its child along: -9."""
        while b"\n" not in self._rest:
            if not wait and not select.select([self._answers], [], [], 0)[0]:
                return None
            chunk = self._answers.read(4096)
            if not chunk:
                return -9
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return int(line)


class Forked:
    """A child of a warm jail, with the part of subprocess.Popen that the sandbox uses."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self.pid = server.answer(wait=True) or 0
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Exit code, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.answer(wait=False)
        return self.returncode

    def wait(self) -> int:
        """Waits for the end."""
        if self.returncode is None:
            self.returncode = self._server.answer(wait=True)
        return self.returncode or 0


class WarmJail:
    """Starts with the first kernel, or with `warm_up`. CPU only: a CUDA context does not survive a fork."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._server: _Server | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="graphlint-", ignore_cleanup_errors=True)

    def __enter__(self) -> WarmJail:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._server is not None:
            self._server.process.kill()
            self._server.process.wait()
        self._folder.cleanup()

    def warm_up(self) -> None:
        """Starts importing now, beside whatever the caller does until the first kernel."""
        if self._server is None:
            self._server = _Server(self._worker, Path(self._folder.name))

    def start(self, config: dict[str, Any]) -> Forked:
        """Forks a child that runs the worker in `config["folder"]`."""
        if self._server is None or self._server.process.poll() is not None:
            self._server = _Server(self._worker, Path(self._folder.name))
        self._server.ask(config | {"environment": environment(Path(config["folder"]), "cpu")})
        return Forked(self._server)
