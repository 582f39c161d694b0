"""Single files, and lines changed since a revision: what is reported, while the whole project is understood."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from engine import DRAFTER, FILES, FILLED, FORWARD


def git(*arguments):
    options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *options, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tree):
    """The engine without its fault, committed."""
    root = tree({**FILES, "engine/drafter.py": FILLED})
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    return root


@pytest.fixture
def findings(graphlint):
    def run(*arguments, stdin=""):
        result = graphlint("check", *arguments, "--output-format", "json", stdin=stdin)
        assert result.stderr == ""
        return [(one["path"], one["rule"], one["line"]) for one in json.loads(result.stdout)["findings"]]

    return run


FAULT = ("engine/drafter.py", "GL301", 16)


def test_a_single_file_is_understood_with_the_rest_of_its_project(repository, tree, findings):
    tree({"engine/drafter.py": DRAFTER})
    assert findings(".") == [FAULT]
    assert findings("engine/drafter.py") == [FAULT]
    assert findings("engine/drafter.py", "--no-context") == []
    assert findings(str(repository / "engine/drafter.py")) == [FAULT]


def test_nothing_is_reported_in_the_files_around(repository, tree, findings, graphlint):
    tree({"engine/drafter.py": DRAFTER, "engine/broken.py": "def (num_reqs:\n", "engine/old.py": "x = 1  # graphlint: ignore[GL301]\n"})
    assert findings("engine/forward.py") == []
    assert "checked 1 file (read 4 more to understand them)" in graphlint("check", "engine/forward.py").stdout


def test_the_rest_is_not_read_for_files_in_which_nothing_can_be_found(repository, tree, graphlint):
    tree({"engine/plain.py": "x = 1\n"})
    assert graphlint("check", "engine/plain.py").stdout.startswith("Found no problems; checked 1 file in ")
    assert "(read 2 more to understand them)" in graphlint("check", "engine/plain.py", "engine/forward.py").stdout


def test_the_folder_of_the_configuration_is_the_project_where_it_is_nearer(repository, tree, graphlint, monkeypatch):
    tree({"engine/graphlint.toml": "", "other/far.py": FORWARD})
    monkeypatch.chdir(repository / "engine")
    assert "checked 1 file (read 2 more to understand them)" in graphlint("check", "drafter.py").stdout


def test_without_repository_or_configuration_the_package_is_the_project(tree, findings, graphlint):
    tree({**FILES, "engine/drafter.py": DRAFTER, "far.py": "x = 1\n"})
    assert findings("engine/drafter.py") == [FAULT]
    assert "(read 2 more to understand them)" in graphlint("check", "engine/drafter.py").stdout
    (Path("engine") / "__init__.py").unlink()
    assert findings("engine/drafter.py") == []
    assert findings("engine/drafter.py", "engine/forward.py") == [FAULT]


def test_standard_input_replaces_the_file_and_sees_the_rest(repository, findings):
    assert findings("--stdin-filename", "engine/drafter.py", "-", stdin=DRAFTER) == [FAULT]
    assert findings("engine/drafter.py") == []


def test_excluded_files_are_no_context(repository, tree, graphlint):
    tree({"graphlint.toml": 'exclude = ["engine/forward.py"]\n'})
    assert "(read 1 more to understand them)" in graphlint("check", "engine/drafter.py").stdout


def test_diff_base_reports_what_the_change_brought_in(repository, tree, findings):
    old = DRAFTER.replace("Drafter", "Old")
    tree({"engine/old.py": old})
    git("add", "-A")
    git("commit", "-q", "-m", "an old fault")
    git("checkout", "-q", "-b", "branch")
    assert findings("--diff-base", "main") == []
    tree({"engine/drafter.py": FILLED.replace("self.idx_mapping[num_reqs:].fill_(-1)", "pass")})
    assert findings(".") == [FAULT, ("engine/old.py", "GL301", 16)]
    assert findings("--diff-base", "main") == [FAULT]
    git("commit", "-q", "-am", "the fill replaced")
    assert findings("--diff-base", "main") == [FAULT]
    assert findings("--diff-base", "HEAD") == []


def test_diff_base_sees_a_deleted_statement(repository, tree, findings):
    tree({"engine/drafter.py": DRAFTER})
    assert findings("--diff-base", "HEAD") == [FAULT]


def test_diff_base_does_not_see_a_deletion_elsewhere(repository, tree, findings):
    tree({"engine/drafter.py": DRAFTER})
    git("commit", "-q", "-am", "the fault")
    tree({"engine/drafter.py": DRAFTER.replace("    def neighbour(self, a, b):\n        return a + b\n\n", "")})
    assert findings("--diff-base", "HEAD") == []


def test_diff_base_counts_a_changed_reader_and_new_files(repository, tree, findings):
    tree({"engine/drafter.py": DRAFTER})
    git("commit", "-q", "-am", "the fault")
    tree({"engine/forward.py": FORWARD.replace("sample", "pick")})
    assert findings("--diff-base", "HEAD") == [FAULT]
    git("checkout", "-q", "engine/forward.py")
    tree({"engine/a \"b\" é.py": DRAFTER.replace("Drafter", "New")})
    assert findings("--diff-base", "HEAD") == [('engine/a "b" é.py', "GL301", 16)]
    git("add", "-A")
    assert findings("--diff-base", "HEAD") == [('engine/a "b" é.py', "GL301", 16)]
    git("commit", "-q", "-m", "odd name")
    tree({"engine/a \"b\" é.py": DRAFTER.replace("Drafter", "New").replace("copy_(idx_mapping)", "copy_(idx_mapping.int())")})
    assert findings("--diff-base", "HEAD") == [('engine/a "b" é.py', "GL301", 16)]


def test_diff_base_compares_with_the_merge_base(repository, tree, findings):
    git("checkout", "-q", "-b", "branch")
    tree({"engine/drafter.py": DRAFTER})
    git("commit", "-q", "-am", "the fault")
    git("checkout", "-q", "main")
    tree({"engine/forward.py": FORWARD.replace("sample", "pick")})
    git("commit", "-q", "-am", "main goes on")
    git("checkout", "-q", "branch")
    assert findings("--diff-base", "main") == [FAULT]


def test_diff_base_without_git_or_revision_is_a_usage_error(repository, tree, graphlint, monkeypatch, tmp_path_factory):
    result = graphlint("check", "--diff-base", "nowhere")
    assert result.returncode == 2
    assert "git knows no revision 'nowhere'" in result.stderr
    assert "is no revision" in graphlint("check", "--diff-base", "--output=x").stderr
    monkeypatch.chdir(tmp_path_factory.mktemp("plain"))
    assert "not a git repository" in graphlint("check", "--diff-base", "HEAD").stderr
