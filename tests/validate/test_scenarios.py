"""The bundled reproductions, through the command line."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from graphlint.cli.validate import validate_command
from graphlint.validate import render
from graphlint.validate.scenarios import available
from graphlint.validate.verdict import Observation, Verdict

needs_triton = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "triton", "numpy")), reason="needs the `validate` extra"
)
NAMES = ("draft-prefill-gather", "slot-tail-overwrites-kv", "stale-decode-offsets")


def test_every_scenario_has_a_page_and_is_listed_without_torch() -> None:
    assert tuple(one.name for one in available()) == NAMES
    for one in available():
        for heading in ("What it shows", "Why nobody notices", "How it is made visible", "Faulty and corrected"):
            assert heading in one.page, (one.name, heading)
    result = CliRunner().invoke(validate_command, ["--list-scenarios"])
    assert result.exit_code == 0
    assert all(name in result.output for name in NAMES)


@needs_triton
@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_shows_its_fault_and_its_correction(name: str, tmp_path: Path) -> None:
    target = tmp_path / "verdicts.json"
    result = CliRunner().invoke(
        validate_command, ["--scenario", name, "--device", "cpu", "--output-format", "text", "--output-format", f"json={target}"]
    )
    assert result.exit_code == 0, result.output
    assert "confirmed" in result.output
    assert "fix verified" in result.output
    verdict = json.loads(target.read_text())["verdicts"][0]
    by_variant: dict[str, list[dict[str, object]]] = {}
    for seen in verdict["observations"]:
        by_variant.setdefault(str(seen["variant"]), []).append(seen)
    faulty, corrected = by_variant.values()
    assert any(seen["fault"] for seen in faulty)
    assert not any(seen["fault"] for seen in corrected)
    assert all(seen["live_exact"] for seen in faulty + corrected)
    assert verdict["evidence"]["isolation"]["network"] in ("namespace", "none (trusted code)")


@needs_triton
@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_on_a_gpu(name: str) -> None:
    result = CliRunner().invoke(validate_command, ["--scenario", name, "--device", "cuda", "--quick"])
    assert result.exit_code == 0, result.output


def test_usage_errors_are_clear() -> None:
    runner = CliRunner()
    near = runner.invoke(validate_command, ["--scenario", "stale-decode-ofsets"])
    assert near.exit_code == 2
    assert "did you mean stale-decode-offsets?" in near.output
    nothing = runner.invoke(validate_command, [])
    assert nothing.exit_code == 2
    assert "--list-scenarios" in nothing.output
    assert runner.invoke(validate_command, ["--scenario", NAMES[0], "--output-format", "xml"]).exit_code == 2


def test_a_file_that_holds_no_cases(tmp_path: Path) -> None:
    broken = tmp_path / "cases.json"
    broken.write_text("[]")
    result = CliRunner().invoke(validate_command, ["--cases", str(broken)])
    assert result.exit_code == 2
    assert "is not a file of saved cases" in result.output


def verdict() -> Verdict:
    seen = Observation(case="c", variant="as it is", live=2, padded=4, unit="lanes", fault=True, lanes=[3], text="lane 3 <stale>")
    return Verdict(subject="a&b", kind="finding", result="confirmed", reason="shown", observations=[seen], rules=["GL201"])


def test_lanes_are_drawn() -> None:
    assert render.lanes(verdict().observations[0]) == "██·!"
    wide = Observation(case="c", variant="v", live=100, padded=120, unit="lanes", fault=False)
    assert render.lanes(wide) == "█" * 48 + "…"


def test_reports_say_the_same_in_every_format() -> None:
    text, page, data = render.as_text([verdict()]), render.as_html([verdict()]), json.loads(render.as_json([verdict()]))
    assert "confirmed" in text
    assert "██·!" in text
    assert text.endswith("1 confirmed")
    assert "a&amp;b" in page
    assert "lane 3 &lt;stale&gt;" in page
    assert page.count("class='lane bad'") == 2  # the legend and lane 3
    assert data["schema"] == 1
    assert data["verdicts"][0]["observations"][0]["lanes"] == [3]
