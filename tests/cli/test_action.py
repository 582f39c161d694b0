"""The GitHub action: its form, and its check step run by bash as a runner would."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

sys.path.insert(0, str(Path(__file__).parent))
from engine import FILES

ROOT = Path(__file__).parents[2]
ACTION = YAML(typ="safe").load((ROOT / "action.yml").read_text())


def test_it_follows_the_schema_of_actions():
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", str(ROOT / "action.yml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def step(tree, tmp_path):
    """Run the check step with these inputs; returns exit status, standard output, outputs, summary."""
    if os.name == "nt" or shutil.which("bash") is None:
        pytest.skip("needs bash")
    root = tree({f"repository/{name}": text for name, text in FILES.items()}) / "repository"
    temporary = tmp_path / "runner temp"
    program = temporary / "graphlint" / "bin" / "graphlint"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m graphlint "$@"\n')
    program.chmod(0o755)
    (check,) = [one for one in ACTION["runs"]["steps"] if one.get("id") == "check"]

    def run(**inputs):
        values = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()} | inputs
        environment = {**os.environ, "RUNNER_TEMP": str(temporary)}
        for name, expression in check["env"].items():
            key = expression.removeprefix("${{ inputs.").removesuffix(" }}")
            environment[name] = values.get(key, "")
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            (tmp_path / name).write_text("")
            environment[name] = str(tmp_path / name)
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", check["run"]]
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
        return done, (tmp_path / "GITHUB_OUTPUT").read_text(), (tmp_path / "GITHUB_STEP_SUMMARY").read_text(), root

    return run


def test_it_annotates_counts_and_fails(step):
    done, output, summary, root = step(**{"sarif-file": "out.sarif"})
    assert done.returncode == 1
    assert done.stdout.startswith("::error title=GL301 stale-tail,file=engine/drafter.py,line=16,")
    assert output == "findings=1\n"
    assert summary.startswith("## graphlint\n")
    assert json.loads((root / "out.sarif").read_text())["version"] == "2.1.0"


def test_paths_and_arguments_are_words_and_nothing_more(step):
    done, output, _, root = step(paths="engine/forward.py engine/__init__.py", arguments="--select GL2 --exclude-nothing;touch$IFS'x'")
    assert done.returncode == 2
    assert not (root / "x").exists()
    done, output, _, _ = step(paths="engine/forward.py engine/__init__.py", arguments="--select GL2")
    assert (done.returncode, output) == (0, "findings=0\n")
