"""Shared helpers: the command line run in a temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphlint.cli import main

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str | bytes]], Path]:
    """Write files below a temporary folder, which becomes the current one."""
    monkeypatch.chdir(tmp_path)

    def write(files: Mapping[str, str | bytes]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write


@pytest.fixture
def graphlint() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in this process and the current folder: exit status, standard output, standard error."""

    def run(*arguments: str, stdin: str = "", env: Mapping[str, str | None] | None = None) -> subprocess.CompletedProcess[str]:
        environment = {"NO_COLOR": None, "FORCE_COLOR": None, **(env or {})}
        result = CliRunner().invoke(main, arguments, input=stdin, env=environment, prog_name="graphlint", terminal_width=120)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def graphlint_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a process of its own, as a user would."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "graphlint", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=120)

    return run
