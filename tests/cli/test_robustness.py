"""Bad input gets a message with file and place, exit status 2, and nothing else is lost."""

import json
import os


def test_a_file_that_does_not_parse(pack, tree, graphlint):
    pack({})
    tree({"a.py": "bad = 1\n", "broken.py": "bad = 1\ndef f(:\n"})
    result = graphlint("check", ".", "--output-format", "json")
    assert result.returncode == 2
    assert result.stderr == "error: broken.py:2: does not parse: invalid syntax\n"
    report = json.loads(result.stdout)
    assert report["errors"] == [{"path": "broken.py", "kind": "syntax", "message": "line 2: does not parse: invalid syntax"}]
    assert [f["path"] for f in report["findings"]] == ["a.py"]
    assert graphlint("check", ".", "--exit-zero").returncode == 0


def test_a_file_that_is_not_utf_8(pack, tree, graphlint):
    pack({})
    tree({"a.py": "bad = 1\n", "latin.py": b"bad = 1\nname = '\xe9'\n"})
    result = graphlint("check", ".", "--output-format", "json")
    assert result.returncode == 2
    assert "error: latin.py:2: not utf-8: byte 0xe9 at offset 16 (line 2)" in result.stderr
    assert [f["path"] for f in json.loads(result.stdout)["findings"]] == ["a.py"]


def test_an_empty_file_and_null_bytes(tree, graphlint):
    tree({"empty.py": ""})
    assert graphlint("check", "empty.py").returncode == 0
    tree({"null.py": b"x = 1\0\n"})
    result = graphlint("check", "null.py")
    assert result.returncode == 2
    assert "null.py" in result.stderr
    assert "Traceback" not in result.stderr


def test_folder_loops_end(pack, tree, graphlint):
    pack({})
    root = tree({"pkg/sub/c.py": "bad = 1\n"})
    os.symlink(root / "pkg", root / "pkg" / "sub" / "loop")
    result = graphlint("check", "pkg", "--output-format", "concise")
    assert result.returncode == 1
    assert len(result.stdout.splitlines()) == 2


def test_a_file_of_five_megabytes(pack, tree, graphlint):
    pack({})
    table = "TABLE = {" + ", ".join(f"'key {n}': 'a value that takes some room in the file, number {n}'" for n in range(1000)) + "}\n"
    tree({"a.py": "bad = 1\n" + table * (5_000_000 // len(table) + 1)})
    result = graphlint("check", "a.py", "--output-format", "concise")
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.startswith("a.py:1:1: error[XX101]")


def test_an_unreadable_file(pack, tree, graphlint):
    pack({})
    root = tree({"a.py": "bad = 1\n"})
    os.mkfifo(root / "x.py")
    os.symlink("nowhere.py", root / "c.py")
    result = graphlint("check", ".", "--output-format", "concise")
    assert result.returncode == 1
    assert result.stdout.startswith("a.py:1:1: error[XX101]")


def test_an_engine_that_fails_is_an_error_of_the_report(pack, tree, graphlint, monkeypatch):
    from graphlint import project

    def load(*arguments, **options):
        raise RuntimeError("join failed")

    pack({})
    tree({"a.py": "bad = 1  # graphlint: ignore\n"})
    monkeypatch.setattr(project, "load", load)
    result = graphlint("check", ".", "--output-format", "json")
    assert result.returncode == 2
    assert result.stderr.startswith("error: the project could not be analysed: RuntimeError: join failed (test_robustness.py:")
    assert json.loads(result.stdout)["findings"] == []


def test_a_rule_that_crashes_loses_nothing_but_itself(pack, tree, graphlint):
    pack({"tail": "raise ValueError('no idea')"}, {"id": "XX102", "name": "other", "word": "bad"})
    tree({"a.py": "bad = 1\nx = 1  # graphlint: ignore[XX101]\n"})
    result = graphlint("check", ".", "--output-format", "concise")
    assert result.returncode == 2
    assert [line.split(" ")[1] for line in result.stdout.splitlines()[:-1]] == ["error[XX101]", "error[XX102]"]
    assert "error: XX101 bad-name crashed: ValueError: no idea (rule_0.py:" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_rule_file_that_cannot_be_loaded(pack, tree, graphlint):
    pack("x = 1\nraise RuntimeError('broken pack')\n", "RULE = 3\n", "def f(:\n", {})
    tree({"a.py": "bad = 1\nx = 1  # graphlint: ignore[XX909]\n"})
    result = graphlint("check", "a.py", "--output-format", "concise")
    assert result.returncode == 2
    assert result.stdout.startswith("a.py:1:1: error[XX101]")
    assert result.stderr.splitlines() == [
        "error: house/family/rule_0.py:2: the rule cannot be loaded: RuntimeError: broken pack",
        "error: house/family/rule_1.py: the file defines no `RULE = Rule(...)`",
        "error: house/family/rule_2.py:1: the rule cannot be loaded: SyntaxError: invalid syntax",
    ]


def test_two_rules_with_one_id(pack, tree, graphlint):
    pack({}, {"name": "other"})
    tree({"a.py": ""})
    result = graphlint("check", ".")
    assert result.returncode == 2
    assert "two rules are called XX101" in result.stderr
    assert "rule_0.py and " in result.stderr
