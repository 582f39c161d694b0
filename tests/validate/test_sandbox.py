"""The sandbox: what a child may not do, and how its end is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from graphlint.validate.sandbox import Limits, Outcome, run

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are those of Linux")


@pytest.fixture
def child(tmp_path: Path):
    """Runs a body as the worker of a child process."""

    def start(body: str, **limits: float) -> Outcome:
        modules = tmp_path / "modules"
        modules.mkdir()
        (modules / "hostile.py").write_text("import json, os, sys\ndef main(folder):\n" + textwrap.indent(textwrap.dedent(body), "    "))
        folder = tmp_path / "box"
        folder.mkdir()
        root = Path(__file__).resolve().parents[2]
        chosen = Limits(**{"seconds": 10, "memory": 512 << 20, **limits})  # type: ignore[arg-type]
        return run("hostile", folder, limits=chosen, extra_environment={"PYTHONPATH": f"{root}{os.pathsep}{modules}"})

    return start


def test_a_worker_that_behaves(child) -> None:
    outcome = child("open('result.json', 'w').write(json.dumps({'answer': 42})); print('hello')")
    assert (outcome.status, outcome.result, outcome.stdout) == ("ok", {"answer": 42}, "hello\n")
    assert outcome.isolation.network in ("namespace", "audit-hook")
    assert outcome.isolation.files in ("landlock", "audit-hook")


def test_endless_loop_is_stopped(child) -> None:
    started = time.monotonic()
    outcome = child("while True: pass", seconds=1)
    assert outcome.status == "timeout"
    assert "1 s" in outcome.detail
    assert time.monotonic() - started < 6


@pytest.mark.parametrize(
    "body", ["held = []\nwhile True: held.append(bytearray(16 << 20))", "bytes(200 << 30)"], ids=["step by step", "at once"]
)
def test_allocation_without_bound_is_stopped(child, body: str) -> None:
    outcome = child(body, memory=256 << 20)
    assert outcome.status == "memory"
    assert "256 MiB" in outcome.detail
    assert outcome.peak_memory < 400 << 20


@pytest.mark.parametrize(
    "body",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9), 1)",
        "import socket\ntry:\n    socket.socket()\nexcept PermissionError:\n    pass",
        "import socket; socket.getaddrinfo('localhost', 80)",
    ],
    ids=["connect", "refusal swallowed", "name lookup"],
)
def test_a_socket_is_refused(child, body: str) -> None:
    outcome = child(body)
    assert outcome.status == "denied"
    assert "socket." in outcome.detail


def test_writing_outside_of_the_folder_is_refused(child, tmp_path: Path) -> None:
    victim = tmp_path / "victim.txt"
    victim.write_text("live")
    outcome = child(f"open({str(victim)!r}, 'w').write('dead')")
    assert outcome.status == "denied"
    assert str(victim) in outcome.detail
    assert victim.read_text() == "live"


def test_the_kernel_refuses_writes_that_pass_by_the_audit_hook(tmp_path: Path) -> None:
    victim, box = tmp_path / "victim.txt", tmp_path / "box"
    victim.write_text("live")
    box.mkdir()
    probe = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from graphlint.validate.jail import confine_writes; print(confine_writes(sys.argv[1], False));"
            "open(sys.argv[1] + '/inside', 'w'); open(sys.argv[2], 'w')",
            str(box),
            str(victim),
        ],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.stdout.strip() != "landlock":
        pytest.skip("no Landlock here")
    assert (box / "inside").exists()
    assert "PermissionError" in probe.stderr
    assert victim.read_text() == "live"


@pytest.mark.parametrize(
    "body", ["import subprocess; subprocess.run(['true'])", "os.system('true')", "os.fork()"], ids=["Popen", "system", "fork"]
)
def test_other_processes_are_refused(child, body: str) -> None:
    assert child(body).status == "denied"


def test_a_crash_is_an_outcome(child) -> None:
    outcome = child("import faulthandler; faulthandler._sigsegv()")
    assert (outcome.status, outcome.detail) == ("crash", "died of SIGSEGV")


def test_an_exception_is_told_by_its_last_line(child) -> None:
    outcome = child("raise ValueError('lane 7')")
    assert (outcome.status, outcome.detail) == ("error", "ValueError: lane 7")


def test_output_is_capped(child) -> None:
    outcome = child("for i in range(100000): print('x' * 79)", output=10_000)
    assert outcome.status == "ok"
    assert len(outcome.stdout) < 10_100
    assert "bytes left out" in outcome.stdout


def test_large_files_are_refused(child) -> None:
    outcome = child("open('big', 'wb').write(bytes(2 << 20))", file_size=1 << 20)
    assert outcome.status in ("error", "crash")


def test_no_process_outlives_the_child(tmp_path: Path) -> None:
    modules, folder = tmp_path / "modules", tmp_path / "box"
    modules.mkdir()
    folder.mkdir()
    (modules / "parent.py").write_text(
        "import subprocess, sys, json\n"
        "def main(folder):\n"
        "    p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        "    open('result.json', 'w').write(json.dumps({'pid': p.pid}))\n"
    )
    root = Path(__file__).resolve().parents[2]
    outcome = run(
        "parent", folder, limits=Limits(seconds=10), trusted=True, extra_environment={"PYTHONPATH": f"{root}{os.pathsep}{modules}"}
    )
    assert outcome.result is not None
    state = Path(f"/proc/{outcome.result['pid']}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_the_environment_carries_no_secrets(child, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "abc")
    outcome = child("open('result.json', 'w').write(json.dumps(dict(os.environ)))")
    assert outcome.result is not None
    assert "SECRET_TOKEN" not in json.dumps(outcome.result)
