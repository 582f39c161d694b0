"""`graphlint baseline` and `check --baseline`, on a small engine with one fault in `Drafter.propose`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from engine import DRAFTER, FILES, FILLED, FORWARD

BASELINE = "graphlint-baseline.txt"
NEIGHBOUR = "    def neighbour(self, a, b):\n        return a + b\n\n"
#: the same fault once more, in a function of its own
TWICE = DRAFTER + """
    def repropose(self, num_reqs, idx_mapping, desc):
        self.idx_mapping[:num_reqs].copy_(idx_mapping)
        self.manager.run_fullgraph(desc)
"""


@pytest.fixture
def adopted(tree, graphlint, monkeypatch):
    """The engine with a baseline of its fault; checks it after an edit, and says what is new and what became of the baseline."""
    monkeypatch.delenv("CI", raising=False)
    root = tree(FILES)
    created = graphlint("baseline", "create")
    assert created.returncode == 0
    assert f"{BASELINE}: 1 finding\n" in created.stdout

    def check(*arguments, **files):
        result = graphlint("check", ".", "--baseline", BASELINE, "--output-format", "json", *arguments, **files)
        return [(one["rule"], one["symbol"]) for one in json.loads(result.stdout)["findings"]], result

    check.root = root
    return check


def lines(root):
    return [line.split("\t")[:4] for line in (root / BASELINE).read_text().splitlines() if not line.startswith("#")]


def test_a_known_finding_is_not_reported_and_the_run_passes(adopted, graphlint):
    found, result = adopted()
    assert (found, result.returncode) == ([], 0)
    assert lines(adopted.root) == [["engine/drafter.py", "GL301", "Drafter.propose", "idx_mapping"]]
    assert "1 known from the baseline" in graphlint("check", ".", "--baseline", BASELINE).stdout


@pytest.mark.parametrize("edited", [
    pytest.param(DRAFTER.replace("import torch\n", "import torch\n\n# moved\n# down\n"), id="lines above"),
    pytest.param(DRAFTER.replace("neighbour", "renamed").replace("(self, a, b)", "(self, a, c)"), id="neighbour renamed"),
    pytest.param(
        DRAFTER.replace("[:num_reqs].copy_(idx_mapping)", "[\n            : num_reqs\n        ].copy_((idx_mapping),)  # x"),
        id="layout of the flagged statement",
    ),
    pytest.param(DRAFTER.replace(NEIGHBOUR, "") + "\n" + NEIGHBOUR.rstrip("\n") + "\n", id="functions in another order"),
])
def test_edits_beside_the_finding_keep_it_known(adopted, tree, edited):
    assert edited != DRAFTER
    tree({"engine/drafter.py": edited})
    before = lines(adopted.root)
    assert adopted()[0] == []
    assert lines(adopted.root) == before


def test_formatting_by_ruff_keeps_it_known(adopted, tree):
    ugly = DRAFTER.replace("self.idx_mapping[:num_reqs].copy_(idx_mapping)", "(self.idx_mapping  [ : num_reqs ]). copy_( idx_mapping , )")
    tree({"engine/drafter.py": ugly.replace("torch.int32, device", "torch.int32,device")})
    assert adopted()[0] == []
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", "--isolated", "--line-length=60", "."], cwd=adopted.root, check=True)
    assert (adopted.root / "engine/drafter.py").read_text() != ugly
    assert adopted()[0] == []


def test_a_function_that_moves_to_another_file_or_class_stays_known(adopted, tree):
    (adopted.root / "engine/drafter.py").unlink()
    tree({"engine/speculator.py": DRAFTER.replace("class Drafter", "class Speculator")})
    found, result = adopted()
    assert (found, result.returncode) == ([], 0)


def test_a_finding_that_changes_is_new(adopted, tree):
    tree({"engine/drafter.py": DRAFTER.replace("[:num_reqs].copy_(idx_mapping)", "[:num_reqs].copy_(idx_mapping + 1)")})
    found, result = adopted()
    assert (found, result.returncode) == ([("GL301", "Drafter.propose")], 1)


def test_a_second_finding_of_the_same_text_is_new(adopted, tree):
    tree({"engine/drafter.py": TWICE})
    found, result = adopted()
    assert (found, result.returncode) == ([("GL301", "Drafter.repropose")], 1)


def test_it_shrinks_by_itself(adopted, tree):
    tree({"engine/drafter.py": FILLED})
    found, result = adopted()
    assert (found, result.returncode) == ([], 0)
    assert f"{BASELINE}: removed 1 finding, gone from the code" in result.stderr
    assert lines(adopted.root) == []


def test_in_ci_a_stale_entry_fails_the_run_and_changes_nothing(adopted, tree, monkeypatch):
    tree({"engine/drafter.py": FILLED})
    monkeypatch.setenv("CI", "true")
    found, result = adopted()
    assert (found, result.returncode) == ([], 1)
    assert "stale: engine/drafter.py: GL301 Drafter.propose idx_mapping" in result.stderr
    assert f"error: {BASELINE} lists 1 finding gone from the code; " in result.stderr
    assert "run `graphlint baseline prune` and commit it" in result.stderr
    assert len(lines(adopted.root)) == 1
    assert adopted("--stale-baseline", "keep")[1].returncode == 0
    monkeypatch.delenv("CI")
    assert adopted("--stale-baseline", "fail")[1].returncode == 1
    adopted("--stale-baseline", "shrink")
    assert lines(adopted.root) == []


def test_a_run_that_sees_only_a_part_leaves_the_baseline_alone(adopted, tree, graphlint):
    tree({"engine/drafter.py": FILLED, "engine/other.py": "x = 1\n"})
    for arguments in (["engine/other.py"], ["engine/drafter.py", "--select", "GL2"]):
        assert graphlint("check", *arguments, "--baseline", BASELINE, "--stale-baseline", "fail").returncode == 0
    tree({"engine/drafter.py": "def broken(:\n"})
    assert graphlint("check", ".", "--baseline", BASELINE, "--stale-baseline", "fail").returncode == 2
    assert len(lines(adopted.root)) == 1


def test_a_deleted_file_is_stale(adopted, graphlint):
    (adopted.root / "engine/drafter.py").unlink()
    assert graphlint("check", ".", "--baseline", BASELINE, "--stale-baseline", "fail").returncode == 1


def test_update_prune_and_check(adopted, tree, graphlint):
    tree({"engine/drafter.py": FILLED, "engine/second.py": DRAFTER.replace("class Drafter", "class Second")
          .replace(".copy_(idx_mapping)", ".copy_(idx_mapping.int())")})
    result = graphlint("baseline", "check")
    assert result.returncode == 1
    assert "new:   engine/second.py:16: GL301" in result.stdout
    assert "stale: engine/drafter.py: GL301 Drafter.propose idx_mapping\n" in result.stdout
    assert f"{BASELINE}: 1 new, 1 stale, 0 as listed\n" in result.stdout
    assert graphlint("baseline", "prune").stdout == f"{BASELINE}: 1 removed, 0 kept\n"
    assert lines(adopted.root) == []
    assert graphlint("baseline", "update").stdout == f"{BASELINE}: 1 added, 0 removed, 0 kept\n"
    assert lines(adopted.root) == [["engine/second.py", "GL301", "Second.propose", "idx_mapping"]]
    assert graphlint("baseline", "check").returncode == 0


def test_create_does_not_overwrite_by_accident(adopted, tree, graphlint):
    tree({"engine/drafter.py": TWICE})
    result = graphlint("baseline", "create")
    assert result.returncode == 2
    assert "`graphlint baseline update` changes it, --force replaces it" in result.stderr
    assert graphlint("baseline", "create", "--force").returncode == 0
    assert [entry[2] for entry in lines(adopted.root)] == ["Drafter.propose", "Drafter.repropose"]


def test_the_configuration_may_name_it_and_the_folder_of_the_run_does_not_matter(adopted, tree, graphlint, monkeypatch):
    tree({"graphlint.toml": f'baseline = "{BASELINE}"\n', "other.py": FORWARD})
    assert graphlint("check").returncode == 0
    monkeypatch.chdir(adopted.root / "engine")
    assert graphlint("check").returncode == 0
    assert graphlint("check", "drafter.py").returncode == 0
    assert graphlint("baseline", "check").stdout == f"../{BASELINE}: 0 new, 0 stale, 1 as listed\n"


def test_merged_lines_of_two_branches_are_fine_and_conflicts_are_named(adopted, tree, graphlint):
    text = (adopted.root / BASELINE).read_text()
    entry = text.splitlines()[1]
    tree({BASELINE: f"{text}{entry}\n"})
    assert adopted()[0] == []
    tree({BASELINE: f"{text}<<<<<<< ours\n"})
    result = graphlint("check", ".", "--baseline", BASELINE)
    assert result.returncode == 2
    assert f"{BASELINE}:3: not a line of a baseline (a merge conflict?" in result.stderr
    assert "`graphlint baseline create` writes one" in graphlint("check", ".", "--baseline", "missing.txt").stderr
