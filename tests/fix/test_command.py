"""`graphlint check --fix`, `--diff` and `--unsafe-fixes`, as a user runs them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphlint.cli.check import command
from graphlint.finding import Edit
from graphlint.fix.apply import Overlap, apply_edits

ENGINE = '''\
"""A drafter."""
import torch


class Drafter:
    def __init__(self, config, device):
        self.idx = torch.zeros(config.max_num_seqs, dtype=torch.int32)  # kept
        self.last_token_indices = torch.zeros(config.max_num_seqs, dtype=torch.int64, device=device)
        self.seq_lens = torch.zeros(config.max_num_seqs, dtype=torch.int32, device=device)

    def capture(self):
        self.manager.capture(self.generate)

    def generate(self, num_reqs, num_tokens):
        return self.sample(self.last_token_indices[:num_reqs], self.seq_lens[:num_reqs])

    def propose(self, num_reqs, last, lens, desc):
        # the rows of this step
        self.last_token_indices[:num_reqs].copy_(last)   # two spaces stay
        self.seq_lens[:num_reqs] = lens
        self.manager.run_fullgraph(desc)
'''


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drafter.py").write_text(ENGINE)
    return tmp_path / "drafter.py"


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(command, [*words, "--no-config", "--no-cache", "--jobs", "1", "."])
    return result.exit_code, result.stdout, result.stderr


def test_fix_inserts_the_fills_and_leaves_every_other_line(engine: Path) -> None:
    code, _, said = run("--fix", "--select", "GL301")
    assert code == 0
    assert "fixed 2 findings in 1 file" in said
    new = engine.read_text().split("\n")
    added = [line.strip() for line in new if line not in ENGINE.split("\n")]
    assert added == ["self.last_token_indices[num_reqs:].fill_(0)", "self.seq_lens[num_reqs:].fill_(0)"]
    assert [line for line in new if line in ENGINE.split("\n")] == ENGINE.split("\n")
    before = engine.read_text()
    assert run("--fix", "--select", "GL301")[0] == 0
    assert engine.read_text() == before


def test_diff_writes_nothing_and_is_a_patch(engine: Path) -> None:
    code, patch, _ = run("--diff", "--select", "GL301")
    assert code == 1
    assert engine.read_text() == ENGINE
    applied = subprocess.run(["patch", "-p1"], input=patch, text=True, cwd=engine.parent, capture_output=True, check=False)
    assert applied.returncode == 0, applied.stdout
    assert run("--select", "GL301")[0] == 0


def test_unsafe_fixes_need_to_be_asked_for(engine: Path) -> None:
    text = ENGINE.replace("last_token_indices", "idx_mapping")
    engine.write_text(text)
    _, _, said = run("--fix", "--select", "GL301")
    assert "1 unsafe fix left" in said
    assert "idx_mapping[num_reqs:]" not in engine.read_text()
    assert run("--fix", "--unsafe-fixes", "--select", "GL301")[0] == 0
    assert "idx_mapping[num_reqs:].fill_(-1)" in engine.read_text()


def test_line_breaks_of_windows_stay(engine: Path) -> None:
    engine.write_bytes(ENGINE.replace("\n", "\r\n").encode())
    assert run("--fix", "--select", "GL301")[0] == 0
    data = engine.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") == ENGINE.count("\n") + 2


def test_overlapping_edits_are_refused() -> None:
    first, second = Edit("a", 1, 1, 1, 4, "xyz"), Edit("a", 1, 3, 1, 5, "q")
    with pytest.raises(Overlap):
        apply_edits("abcdef\n", [first, second])
    with pytest.raises(Overlap):
        apply_edits("abcdef\n", [Edit("a", 2, 1, 2, 1, "one\n"), Edit("a", 2, 1, 2, 1, "two\n")])
    assert apply_edits("abcdef\n", [Edit("a", 1, 1, 1, 2, "é"), Edit("a", 1, 3, 1, 4, "")]) == "ébdef\n"
