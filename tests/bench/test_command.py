"""`python -m bench` with a stand-in for graphlint that reports lines marked HAZARD, and functions that pad nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.bugs import load_bugs, load_open_faults, scored_bugs
from bench.report import BEGIN, END, Figures, write_docs
from bench.score import BugScore
from bench.timing import Timing

ROOT = Path(__file__).resolve().parents[2]

STAND_IN = '''
import json, pathlib, re, sys
args = sys.argv[1:]
given = args[args.index("--stdin-filename") + 1] if "--stdin-filename" in args else None
spoilt = sys.stdin.read()
findings = []
for path in sorted(pathlib.Path(args[1]).rglob("*.py")):
    text = spoilt if str(path) == given else path.read_text()
    hazards = [(number, *found.groups()) for number, line in enumerate(text.splitlines(), 1)
               if (found := re.search(r"HAZARD (\\S+) (\\S+)", line))]
    if "def pads(b" in text and "fill_" not in text:
        hazards.append((1, "pads", "b"))
    for number, symbol, buffer in hazards:
        findings.append({"rule": "GL301", "name": "stale-tail", "severity": "error", "confidence": "high", "path": str(path),
                         "line": number, "symbol": symbol, "message": f"{buffer} is stale", "buffer": buffer,
                         "fingerprint": f"{path}:{symbol}", "trace": [{"path": str(path), "line": number, "label": "written"}]})
print(json.dumps({"schema": 1, "tool": {"name": "graphlint", "version": "0"}, "findings": findings, "errors": [],
                  "stats": {"files": 1, "parsed": 1, "cached": 0, "seconds": 0.1}}))
'''

Bench = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    env = {
        **os.environ, "GRAPHLINT": f"{sys.executable} {tmp_path / 'stand_in.py'}", "GRAPHLINT_CACHE": str(tmp_path / "releases"),
        "PYTHONPATH": str(ROOT),
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture
def release(tmp_path: Path) -> Callable[[str, Mapping[str, str]], None]:
    def write(name: str, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            target = tmp_path / "releases" / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)

    return write


COPY = "vllm/v1/worker/gpu/spec_decode/speculator.py"


def test_a_bug_is_found_when_its_finding_goes_away(bench: Bench, release: Callable[[str, Mapping[str, str]], None], tmp_path: Path) -> None:
    release("vllm-0.24.0", {COPY: "# HAZARD DraftModelSpeculator._copy_request_inputs idx_mapping\n"})
    release("vllm-0.25.1", {COPY: "x = 1\n"})
    done = bench("score", "--bug", "V05", "--verbose", "--json", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    assert "recall 1/1" in done.stdout
    (scored,) = json.loads((tmp_path / "out.json").read_text())["bugs"]
    assert (scored["id"], scored["found"], scored["by_kind"], scored["rules"]) == ("V05", True, True, ["GL301"])


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("x = 1\n", "x = 1\n"),
        ("# HAZARD Other.method idx_mapping\n", "x = 1\n"),
        ("# HAZARD DraftModelSpeculator._copy_request_inputs a\n", "# HAZARD DraftModelSpeculator._copy_request_inputs a\n"),
    ],
    ids=["silent", "elsewhere", "still reported"],
)
def test_a_bug_is_missed(bad: str, good: str, bench: Bench, release: Callable[[str, Mapping[str, str]], None]) -> None:
    release("vllm-0.24.0", {COPY: bad})
    release("vllm-0.25.1", {COPY: good})
    assert "recall 0/1" in bench("score", "--bug", "V05").stdout


def test_mutants_are_told_apart_from_the_release(bench: Bench, release: Callable[[str, Mapping[str, str]], None], tmp_path: Path) -> None:
    text = "def pads(b, num_reqs):\n    b[num_reqs:].fill_(0)\n"
    release("vllm-0.1.0", {"vllm/a.py": text, "vllm/b.py": "def idle(b, num_reqs):\n    b[num_reqs:].fill_(0)\n# HAZARD idle b\n"})
    done = bench("mutants", "vllm", "0.1.0", "--unread", "--verbose", "--json", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    (table,) = json.loads((tmp_path / "out.json").read_text())
    assert {score["id"]: (score["noticed"], score["located"]) for score in table["scores"]} == {
        "vllm/a.py::pads::host:b#1": (True, True), "vllm/b.py::idle::host:b#1": (False, False),
    }
    assert (tmp_path / "releases/vllm-0.1.0/vllm/a.py").read_text() == text


def test_triage_asks_for_a_verdict_and_show_gives_the_code(bench: Bench, release: Callable[[str, Mapping[str, str]], None]) -> None:
    release("vllm-0.1.0", {"vllm/a.py": "first = 1\n# HAZARD Runner.step buffer\n"})
    done = bench("triage", "vllm", "0.1.0")
    assert done.returncode == 1
    assert 'symbol = "Runner.step"' in done.stdout
    assert "1 untriaged, 0 stale" in done.stdout
    shown = bench("show", "vllm-0.1.0", "--context", "1").stdout
    assert ">     2 # HAZARD Runner.step buffer    <== written" in shown
    assert "      1 first = 1" in shown


def test_noise_counts_and_a_broken_command_is_told(bench: Bench, release: Callable[[str, Mapping[str, str]], None], tmp_path: Path) -> None:
    release("vllm-0.1.0", {"vllm/a.py": "# HAZARD a b\n# HAZARD c d\n"})
    assert "GL301:2" in bench("noise", "vllm", "0.1.0").stdout
    (tmp_path / "stand_in.py").write_text("import sys; sys.exit('no such option')")
    done = bench("noise", "vllm", "0.1.0")
    assert done.returncode == 2
    assert "no such option" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_bugs_are_whole() -> None:
    bugs = load_bugs()
    assert len(bugs) == 113
    assert len({bug.id for bug in (*bugs, *load_open_faults())}) == 125
    for bug in scored_bugs():
        assert bug.bad, bug.id
        assert bug.good, bug.id
        assert bug.symbols, bug.id
        assert bug.file.startswith(f"{bug.project}/"), bug.id


def test_the_page_gets_its_figures_and_keeps_the_rest(tmp_path: Path) -> None:
    page = tmp_path / "accuracy.md"
    page.write_text(f"before\n{BEGIN}\noutdated figures\n{END}\nafter\n")
    bug = BugScore(
        id="V05", kind="stale-index", project="vllm", bad="0.24.0", good="0.25.1", reach="project", found=False, by_kind=False, rules=(),
        still_reported=True,
    )
    write_docs(Figures([bug], [], [], [], {"vllm-1.0": [Timing("cold", 2.0, 1.5, 3.25, 100.4, 3)]}), page)
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "outdated" not in text
    assert "0 of the 1 bugs" in text
    assert "Missed: V05 (stale-index, vllm 0.24.0)." in text
    assert "| vllm-1.0 | cold | 2.00 | 1.50 | 3.25 | 100 |" in text
    page.write_text("no markers")
    with pytest.raises(ValueError, match="are missing"):
        write_docs(Figures([], [], [], [], {}), page)
