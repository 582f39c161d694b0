"""The wheel: rules and kernels travel inside the package, and are found there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from graphlint import registry

ROOT = Path(__file__).resolve().parent.parent


def test_a_wheel_ships_rules_and_kernels_and_runs(tmp_path):
    pip = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(pip, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("vllm_graphlint-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        archive.extractall(tmp_path / "site")
    for folder, shipped in ((ROOT / "rules", "_rules"), (ROOT / "kernels", "_kernels")):
        expected = {f"graphlint/{shipped}/{path.relative_to(folder).as_posix()}" for path in registry.rule_files(folder)}
        assert expected <= names
    assert not any(name.startswith(("tests/", "rules/", "kernels/", "bench/")) for name in names)

    command = [sys.executable, "-m", "graphlint", "rule", "--output-format", "json"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    result = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    installed = {one["id"] for one in json.loads(result.stdout)}
    assert installed == {"GL001", *registry.load().entries}
