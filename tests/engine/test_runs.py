"""Runs over the same engine agree: cached or not, one process or several, beside files that do not parse.

Two caches are asked: what the rules said of exactly these files, and the facts of each file.
"""

import importlib
import json
import os
import sqlite3

import pytest
from engine_fixtures import engine_files

FAULTY = {"view[num_reqs:].fill_(-1)": "pass", "        self.pad_slots(num_scheduled_tokens)": "        pass"}


@pytest.fixture
def report(tree, graphlint, tmp_path):
    """Check the faulty draft model, with the cache in a folder of the test."""
    tree(engine_files("speculator", FAULTY))

    def run(*options, paths=("speculator",)):
        result = graphlint("check", *paths, "--output-format", "json", *options, env={"GRAPHLINT_CACHE_DIR": str(tmp_path / "cache")})
        return json.loads(result.stdout)

    return run


@pytest.fixture
def only_facts(tmp_path):
    """Forget what the rules said: the next run has the facts of the files to go by."""

    def forget():
        for file in (tmp_path / "cache").glob("results.sqlite*"):
            file.unlink()

    return forget


def findings(report):
    assert sorted(finding["buffer"] for finding in report["findings"]) == ["idx_mapping", "slot_mapping"]
    return report["findings"]


def counts(report):
    return {key: report["stats"][key] for key in ("files", "parsed", "cached")}


def test_a_second_run_over_the_same_files_says_the_same_from_the_cache(report):
    first, second = report(), report()
    assert counts(first) == {"files": 4, "parsed": 4, "cached": 0}
    assert counts(second) == {"files": 4, "parsed": 0, "cached": 4}
    assert findings(first) == findings(second)


def test_other_rules_over_the_same_files_parse_nothing(report):
    whole = findings(report())
    one = report("--select", "GL301")
    assert counts(one) == {"files": 4, "parsed": 0, "cached": 4}
    assert one["findings"] == [finding for finding in whole if finding["rule"] == "GL301"]


def test_facts_from_the_cache_lead_to_the_same_findings(report, only_facts):
    whole = findings(report())
    only_facts()
    again = report()
    assert counts(again) == {"files": 4, "parsed": 0, "cached": 4}
    assert findings(again) == whole


def test_a_changed_file_is_read_anew_and_the_others_are_not(report, tree, tmp_path):
    before = findings(report())
    text = (tmp_path / "speculator/speculator.py").read_text()
    tree({"speculator/speculator.py": text.replace("        self.idx_mapping[:num", "        # rows\n        self.idx_mapping[:num")})
    again = report()
    assert counts(again) == {"files": 4, "parsed": 1, "cached": 3}
    lines = {finding["buffer"]: finding["line"] for finding in findings(again)}
    assert lines["idx_mapping"] == {finding["buffer"]: finding["line"] for finding in before}["idx_mapping"] + 1


def test_a_mended_file_is_not_reported_from_memory(report, tree):
    findings(report())
    tree(engine_files("speculator"))
    assert report()["findings"] == []
    tree(engine_files("speculator", FAULTY))
    findings(report())


def test_a_moved_file_is_another_file(report, tree):
    """Facts name their file; the same bytes elsewhere may not come back under the old path."""
    report()
    os.rename("speculator", "moved")
    assert report(paths=("moved",))["stats"]["cached"] == 0
    tree(engine_files("speculator", FAULTY))
    assert {finding["path"].split("/")[0] for finding in findings(report())} == {"speculator"}


def test_without_the_cache_nothing_is_written_and_the_same_is_said(report, tmp_path):
    plain = report("--no-cache")
    assert not (tmp_path / "cache").exists()
    assert findings(plain) == findings(report())


@pytest.mark.parametrize("name", ["facts.sqlite", "results.sqlite"])
@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 500])
def test_a_damaged_cache_file_is_as_good_as_none(report, only_facts, tmp_path, damage, name):
    whole = findings(report())
    only_facts()
    file = tmp_path / "cache" / name
    for beside in file.parent.glob(f"{name}*"):
        beside.unlink()
    file.write_bytes(damage)
    again = report()
    assert findings(again) == whole
    assert again["errors"] == []
    assert again["stats"]["parsed"] == (4 if name == "facts.sqlite" else 0)
    assert report()["stats"]["cached"] == 4, "and the cache is mended"


@pytest.mark.parametrize("name", ["facts.sqlite", "results.sqlite"])
@pytest.mark.parametrize("damage", ["x'00ff17'", "x''", "substr(data, 1, length(data) / 2)", "data || data", "NULL"])
def test_a_damaged_entry_is_as_good_as_none(report, only_facts, tmp_path, damage, name):
    whole = findings(report())
    if name == "facts.sqlite":
        only_facts()
    with sqlite3.connect(tmp_path / "cache" / name) as db:
        db.execute(f"UPDATE blobs SET data = {damage}")
    db.close()
    again = report()
    assert findings(again) == whole
    assert again["errors"] == []


def test_a_cache_folder_that_cannot_be_made_is_done_without(report, tmp_path):
    """A file lies where the folder should: works for every user, root included, as a read-only folder would not."""
    (tmp_path / "cache").write_text("in the way")
    first, second = report(), report()
    assert findings(first) == findings(second)
    assert first["errors"] == second["errors"] == []
    assert second["stats"]["cached"] == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only to root")
def test_a_read_only_cache_folder_is_done_without(report, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o500)
    try:
        first = report()
    finally:
        (tmp_path / "cache").chmod(0o700)
    findings(first)
    assert first["errors"] == []


def test_a_read_only_cache_file_is_done_without(report, tmp_path, monkeypatch):
    """As root sees a read-only folder: the database opens, and every statement that writes fails."""
    real = sqlite3.connect

    def read_only(path, **options):
        real(path).close()
        return real(f"file:{path}?mode=ro", uri=True, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    first = report()
    findings(first)
    assert first["errors"] == []
    assert report()["stats"]["cached"] == 0


def stable(report):
    return json.dumps({**report, "stats": counts(report)}, sort_keys=False)


def test_the_report_does_not_depend_on_the_number_of_processes(report, monkeypatch):
    """Small runs are read in one process; with the limit gone the pool really works."""
    monkeypatch.setattr(importlib.import_module("graphlint.project.load"), "POOL_BYTES", 0)
    alone = stable(report("--no-cache", "--jobs", "1"))
    assert stable(report("--no-cache", "--jobs", "2")) == alone
    assert stable(report("--no-cache", "--jobs", "7")) == alone
    findings(json.loads(alone))


def test_the_report_does_not_depend_on_hash_seeds_or_the_order_of_paths(report, graphlint_process, monkeypatch, tmp_path):
    """Sets of names are about in the analysis; another seed orders them anew."""
    def again(seed, *paths):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        return json.loads(graphlint_process("check", *paths, "--no-cache", "--output-format", "json").stdout)

    monkeypatch.setenv("GRAPHLINT_CACHE_DIR", str(tmp_path / "cache"))
    first = again("1", "speculator")
    findings(first)
    files = [f"speculator/{name}.py" for name in ("speculator", "kernels", "buffers", "__init__")]
    assert stable(again("2", *files)) == stable(first)


def test_a_file_that_does_not_parse_keeps_the_findings_of_the_others(report, tree, graphlint):
    whole = findings(report("--no-cache"))
    tree({"speculator/broken.py": "def num_reqs(:\n    pass\n", "speculator/odd.py": b"num_reqs = '\xff'\n"})
    broken = report("--no-cache")
    assert findings(broken) == whole
    assert [(error["path"], error["kind"]) for error in broken["errors"]] == [
        ("speculator/broken.py", "syntax"), ("speculator/odd.py", "encoding"),
    ]
    assert "1: " in graphlint("check", "speculator", "--no-cache").stderr
    assert graphlint("check", "speculator", "--no-cache").returncode == 2


def test_a_deeply_nested_expression_loses_its_own_file_at_most(report, tree):
    whole = findings(report("--no-cache"))
    tree({"speculator/deep.py": "num_reqs = " + "(" * 90 + "1" + ")" * 90 + "\nnum_tokens = " + "-" * 3000 + "1\n"})
    deep = report("--no-cache")
    assert findings(deep) == whole
    assert {error["path"] for error in deep["errors"]} <= {"speculator/deep.py"}
