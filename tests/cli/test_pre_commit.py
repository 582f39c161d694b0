"""The hooks, run by pre-commit itself on commits of a git repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

sys.path.insert(0, str(Path(__file__).parent))
from engine import DRAFTER, FILES, FILLED

ROOT = Path(__file__).parents[2]
HOOKS = {hook["id"]: hook for hook in YAML(typ="safe").load((ROOT / ".pre-commit-hooks.yaml").read_text())}

pytest.importorskip("pre_commit")
pytestmark = pytest.mark.skipif(os.name == "nt" or shutil.which("git") is None, reason="needs git and a POSIX shell")


class Repository:
    """A git repository with the engine (without its fault) and a pre-commit hook installed."""

    def __init__(self, root, configuration):
        self.root = root
        identity = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
        self.environment = {
            **plain, **identity, "PYTHONPATH": str(ROOT), "PRE_COMMIT_HOME": str(root.parent / "pre-commit"),
            "GRAPHLINT_CACHE_DIR": str(root.parent / "facts"),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        (root / ".pre-commit-config.yaml").write_text(configuration)
        self.run("git", "init", "-q")
        self.run("git", "config", "commit.gpgsign", "false")
        self.run(sys.executable, "-m", "pre_commit", "install")

    def run(self, *command):
        return subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, timeout=600)

    def commit(self, message="change"):
        self.run("git", "add", "-A")
        done = self.run("git", "commit", "-m", message)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def repository(tree):
    root = tree({**FILES, "engine/drafter.py": FILLED, "notes.txt": "nothing\n"})
    hook = {**HOOKS["graphlint"], "language": "system", "entry": f"{sys.executable} -m {HOOKS['graphlint']['entry']}"}
    lines = "\n".join(f"    {'- ' if key == 'id' else '  '}{key}: {str(value).lower() if isinstance(value, bool) else value}"
                      for key, value in hook.items())
    return Repository(root, f"repos:\n- repo: local\n  hooks:\n{lines}\n")


def test_a_clean_commit_passes_and_a_planted_fault_fails_with_the_finding(repository, tree):
    status, output = repository.commit("the engine")
    assert status == 0, output
    assert "graphlint" in output
    assert "Passed" in output
    # the commit holds one file; the reader that makes it a fault is in another, which did not change
    tree({"engine/drafter.py": DRAFTER})
    status, output = repository.commit()
    assert status == 1
    assert "error[GL301]: `idx_mapping`" in output
    assert "engine/drafter.py:16:9" in output
    assert "engine/forward.py:6:" in output
    tree({"engine/drafter.py": FILLED})
    tree({"notes.txt": "no Python file in this commit\n"})
    status, output = repository.commit()
    assert status == 0, output


def test_a_fault_elsewhere_does_not_stop_a_commit_that_does_not_touch_it(repository, tree):
    tree({"engine/drafter.py": DRAFTER})
    repository.run("git", "add", "-A")
    repository.run("git", "commit", "--no-verify", "-m", "the fault is there")
    tree({"engine/other.py": "num_reqs = 1\n"})
    status, output = repository.commit()
    assert status == 0, output


@pytest.mark.ecosystem  # pre-commit builds an environment for the hook from the package index
@pytest.mark.parametrize("hook", ["graphlint", "graphlint-config"])
def test_the_published_hooks_install_and_run(tree, tmp_path, hook):
    source = tmp_path / "graphlint-source"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(source)], check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=source, check=True, capture_output=True, text=True).stdout.strip()
    root = tree({f"work/{name}": text for name, text in FILES.items()}) / "work"
    (root / "serve.sh").write_text("#!/bin/sh\nvllm serve some/model --enforce-eager\n")
    repository = Repository(root, f"repos:\n- repo: {source.as_uri()}\n  rev: {head}\n  hooks:\n  - id: {hook}\n")
    repository.environment.pop("PYTHONPATH")
    status, output = repository.commit()
    if hook == "graphlint":
        assert status == 1
        assert "error[GL301]" in output
    else:
        assert "graphlint config" in output
        assert "Traceback" not in output
