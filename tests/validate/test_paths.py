"""`graphlint validate PATHS` and `graphlint check --confirm` over a small engine."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphlint.cli.check import command as check
from graphlint.cli.validate import command as validate

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "triton", "numpy")), reason="needs the `validate` extra"
)
ENGINE = """\
import torch
import triton
import triton.language as tl


class Drafter:
    def __init__(self, config, device):
        self.max_num_reqs = config.max_num_seqs
        self.last_token_indices = torch.zeros(self.max_num_reqs, dtype=torch.int64, device=device)
        self.hidden = torch.zeros(config.max_num_batched_tokens, 64, device=device)

    def capture(self):
        self.manager.capture(self.forward)

    def forward(self, num_reqs, num_tokens):
        return self.head(self.hidden[self.last_token_indices[:num_reqs]])

    def propose(self, num_reqs, query_start_loc, desc):
        prepare[(num_reqs,)](self.last_token_indices, query_start_loc, self.max_num_reqs, BLOCK=16)
        self.manager.replay(desc)


@triton.jit
def prepare(last_ptr, query_start_loc_ptr, max_num_reqs, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    tl.store(last_ptr + i, tl.load(query_start_loc_ptr + i + 1) - 1)
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drafter.py").write_text(ENGINE)
    return tmp_path / "drafter.py"


def test_a_finding_is_confirmed_and_its_fix_verified(engine: Path) -> None:
    result = CliRunner().invoke(validate, ["--device", "cpu", "--quick", "--output-format", "json=out.json", "drafter.py"])
    assert result.exit_code == 1, result.output
    (verdict,) = json.loads((engine.parent / "out.json").read_text())["verdicts"]
    assert (verdict["result"], verdict["fix"], verdict["rules"]) == ("confirmed", "verified", ["GL201"])
    first = verdict["observations"][0]
    assert (first["live"], first["padded"], first["lanes"]) == (3, 4, [3])
    assert engine.read_text() == ENGINE, "validation changes nothing"


def test_a_fix_on_the_host_is_not_said_to_be_run(engine: Path) -> None:
    engine.write_text(ENGINE.replace(", self.max_num_reqs, BLOCK=16)", ")").replace(", max_num_reqs, BLOCK: tl.constexpr)", ")"))
    CliRunner().invoke(validate, ["--device", "cpu", "--quick", "--output-format", "json=out.json", "drafter.py"])
    (verdict,) = json.loads((engine.parent / "out.json").read_text())["verdicts"]
    assert (verdict["result"], verdict["fix"]) == ("confirmed", "not-run")


def test_check_confirm_keeps_the_finding_as_sure(engine: Path) -> None:
    formats = ["--output-format", "json,html=out.html"]
    result = CliRunner().invoke(check, ["--confirm", "--no-config", "--no-cache", *formats, "drafter.py"])
    page = (engine.parent / "out.html").read_text()
    shown = page[page.index('class="proof confirmed"') :]
    assert "<th>as it is</th>" in shown, "what was seen stands in the page"
    assert shown.index('<b class="stale">') < shown.index("<th>fixed</th>")
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["confidence"] == "high"
    assert finding["fix"]["applicability"] == "safe"
    assert "confirmed: drafter.py:26 GL201" in result.stderr


def test_paths_without_findings_run_nothing(engine: Path) -> None:
    engine.write_text(ENGINE.replace("BLOCK=16)\n", "BLOCK=16)\n        self.last_token_indices[num_reqs:].fill_(0)\n"))
    result = CliRunner().invoke(validate, ["--device", "cpu", "drafter.py"])
    assert result.exit_code == 0, result.output
    assert "running 0 of 0 findings" in result.stderr


def test_a_path_that_is_not_there(engine: Path) -> None:
    result = CliRunner().invoke(validate, ["--device", "cpu", "nowhere.py"])
    assert result.exit_code == 2
    assert "nowhere.py" in result.stderr
