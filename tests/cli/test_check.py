import json


def findings(run, *arguments):
    result = run("check", *arguments, "--output-format", "json")
    return [(f["rule"], f["path"], f["line"]) for f in json.loads(result.stdout)["findings"]]


def test_exit_status_says_what_happened(pack, tree, graphlint):
    pack({})
    tree({"a.py": "ok = 1\n"})
    clean = graphlint("check", "a.py")
    assert clean.returncode == 0
    assert clean.stdout.startswith("Found no problems; checked 1 file in ")
    assert clean.stderr == ""
    tree({"a.py": "ok = 1\nbad = 2\n"})
    assert graphlint("check", "a.py").returncode == 1
    assert graphlint("check", "a.py", "--exit-zero").returncode == 0
    assert graphlint("check", "--nonsense").returncode == 2


def test_findings_are_sorted_by_path_line_and_rule(pack, tree, graphlint):
    pack({}, {"id": "XX102", "name": "ba-name", "word": "ba"})
    tree({"a.py": "x = 1\nbad = 2\n", "pkg/a.py": "bad1 = 1\nbad2 = 2\n"})
    assert findings(graphlint, ".") == [
        ("XX101", "a.py", 2), ("XX102", "a.py", 2), ("XX101", "pkg/a.py", 1), ("XX102", "pkg/a.py", 1), ("XX101", "pkg/a.py", 2),
        ("XX102", "pkg/a.py", 2),
    ]


def test_select_and_ignore_take_ids_prefixes_and_names(pack, tree, graphlint):
    pack({}, {"id": "XX202", "name": "worse-name", "word": "worse"})
    tree({"a.py": "bad = 1\nworse = 2\n"})
    both = [("XX101", "a.py", 1), ("XX202", "a.py", 2)]
    assert findings(graphlint, ".") == both
    assert findings(graphlint, ".", "--select", "XX2") == both[1:]
    assert findings(graphlint, ".", "--select", "xx101") == both[:1]
    assert findings(graphlint, ".", "--select", "worse-name") == both[1:]
    assert findings(graphlint, ".", "--ignore", "XX1,GL") == both[1:]
    assert findings(graphlint, ".", "--select", "ALL", "--ignore", "XX2") == both[:1]
    assert findings(graphlint, ".", "--select", "XX101", "--ignore", "XX") == both[:1]
    assert findings(graphlint, ".", "--select", "XX", "--ignore", "XX") == []


def test_an_unknown_rule_is_a_usage_error_with_a_suggestion(pack, tree, graphlint):
    pack({})
    tree({"a.py": "x = 1\n"})
    result = graphlint("check", "--select", "bad-nam", ".")
    assert result.returncode == 2
    assert "did you mean bad-name?" in result.stderr
    assert "no rule matches 'XX9'" in graphlint("check", "--ignore", "XX9", ".").stderr


def test_severity_and_confidence_thresholds(pack, tree, graphlint):
    pack({"severity": "warning"}, {"id": "XX102", "name": "hint", "word": "hint", "severity": "info"},
         {"id": "XX103", "name": "guess", "word": "guess", "confidence": "low"})
    tree({"a.py": "bad = 1\nhint = 2\nguess = 3\n"})
    assert findings(graphlint, ".") == [("XX101", "a.py", 1), ("XX102", "a.py", 2)]
    assert findings(graphlint, ".", "--min-confidence", "low")[2:] == [("XX103", "a.py", 3)]
    assert findings(graphlint, ".", "--severity", "warning") == [("XX101", "a.py", 1)]
    assert "1 below the confidence or severity asked for" in graphlint("check", ".").stdout
    tree({"a.py": "hint = 2\n"})
    assert graphlint("check", ".").returncode == 0
    assert graphlint("check", ".", "--severity", "info").returncode == 1
    tree({"a.py": "bad = 2\n"})
    assert graphlint("check", ".").returncode == 1
    assert graphlint("check", ".", "--severity", "error").returncode == 0


def test_suppressions_silence_and_unused_ones_are_reported(pack, tree, graphlint):
    pack({}, {"id": "XX202", "name": "worse-name", "word": "worse"})
    tree({
        "a.py": "bad = 1  # graphlint: ignore[XX101] known\n# graphlint: ignore[XX2]\nworse = 1\nbad = 3  # graphlint: ignore\nbad = 4\n",
    })
    assert findings(graphlint, ".") == [("XX101", "a.py", 5)]
    assert "3 suppressed by comments" in graphlint("check", ".").stdout
    tree({"a.py": "x = 1  # graphlint: ignore[XX101,XX2] long gone\ny = 1  # graphlint: ignore\nz = 1  # graphlint: ignore[XX999]\n"})
    result = graphlint("check", ".", "--output-format", "concise")
    assert result.stdout.splitlines()[:4] == [
        "a.py:1:8: info[GL001] `# graphlint: ignore[XX101]` silences nothing",
        "a.py:1:8: info[GL001] `# graphlint: ignore[XX2]` silences nothing",
        "a.py:2:8: info[GL001] `# graphlint: ignore` silences nothing",
        "a.py:3:8: info[GL001] `# graphlint: ignore[XX999]`: there is no rule XX999; `graphlint rule` lists them all",
    ]
    assert result.returncode == 0
    # a rule that did not run may well have matched
    assert [rule for rule, _, line in findings(graphlint, ".", "--select", "XX2,GL001")] == ["GL001", "GL001"]
    assert findings(graphlint, ".", "--select", "XX") == []


def test_the_same_words_about_the_same_place_are_one_finding(pack, tree, graphlint):
    twice = "Finding(rule='XX101', name='bad-name', severity='error', confidence='high', path='a.py', line=1, message='m')"
    pack({"tail": f"yield from [{twice}, {twice}]"})
    tree({"a.py": "x = 1\n"})
    assert findings(graphlint, "a.py") == [("XX101", "a.py", 1)]


def test_an_unknown_engine_is_a_usage_error(tree, graphlint):
    tree({"a.py": ""})
    result = graphlint("check", ".", "--engine", "vlm")
    assert result.returncode == 2
    assert "no vocabulary of an engine 'vlm'; choose from auto, sglang, vllm" in result.stderr


def test_several_outputs_in_one_run(pack, tree, graphlint, tmp_path):
    pack({})
    tree({"a.py": "bad = 1\n"})
    result = graphlint("check", ".", "--output-format", "json=out.json", "--output-format", "concise")
    assert result.stdout.startswith("a.py:1:1: error[XX101] assigns bad (f)\n")
    assert json.loads((tmp_path / "out.json").read_text())["findings"][0]["rule"] == "XX101"
    bad = graphlint("check", ".", "--output-format", "jsn")
    assert bad.returncode == 2
    assert "unknown format 'jsn'; did you mean json?" in bad.stderr
    assert "unknown format 'pdf'; choose from text, concise, json, sarif," in graphlint("check", ".", "--output-format", "pdf").stderr
    both = graphlint("check", ".", "--output-format", "sarif=out,1.sarif,json=o.json,concise")
    assert both.stdout == result.stdout.replace(result.stdout.splitlines()[-1], both.stdout.splitlines()[-1])
    assert json.loads((tmp_path / "out,1.sarif").read_text())["version"] == "2.1.0"
    assert json.loads((tmp_path / "o.json").read_text())["schema"] == 1
    unwritable = graphlint("check", ".", "--output-format", "json=gone/out.json")
    assert unwritable.returncode == 2
    assert "cannot write gone/out.json: No such file or directory" in unwritable.stderr


def test_statistics_never_spoil_machine_readable_output(pack, tree, graphlint):
    pack({}, {"id": "XX102", "name": "worse-name", "word": "worse"})
    tree({"a.py": "bad = 1\nbad = 2\nworse = 1\n", "b.py": "bad = 1\n"})
    table = "3  XX101  bad-name  (2 files)\n1  XX102  worse-name  (1 file)\n"
    assert graphlint("check", ".", "--statistics").stdout.endswith(table)
    machine = graphlint("check", ".", "--statistics", "--output-format", "json")
    assert len(json.loads(machine.stdout)["findings"]) == 4
    assert machine.stderr == table


def test_standard_input_takes_the_place_of_a_file(pack, tree, graphlint):
    pack({})
    tree({"a.py": "bad = 1\n"})
    result = graphlint("check", "--stdin-filename", "new.py", "-", stdin="x = [\n")
    assert result.returncode == 2
    assert result.stderr == "error: new.py:1: does not parse: '[' was never closed\n"


def test_paths_without_python_files(tree, graphlint):
    tree({"docs/readme.txt": "", "a.py": "x = 1\n"})
    missing = graphlint("check", "gone", "a.py")
    assert missing.returncode == 2
    assert missing.stderr == "error: gone: no such file or folder\n"
    empty = graphlint("check", "docs")
    assert empty.returncode == 2
    assert empty.stderr.startswith("error: docs: no Python file found here")
    assert graphlint("check", "docs", "a.py").returncode == 0
    assert graphlint("check", "--exit-zero", "gone").returncode == 2


def test_fingerprints_survive_moves_and_tell_twins_apart(pack, tree, graphlint, tmp_path, monkeypatch):
    pack({})
    tree({"pkg/a.py": "bad = 1\nbad = 1\n"})

    def prints(*arguments):
        return [f["fingerprint"] for f in json.loads(graphlint("check", *arguments, "--output-format", "json").stdout)["findings"]]

    before = prints("pkg")
    assert len(set(before)) == 2
    tree({"pkg/a.py": "import os\n\n\nbad  =  1\n\nbad = 1\n"})
    assert prints("pkg") == before
    tree({"pkg/a.py": "bad1 = 1\nbad = 1\n"})
    assert prints("pkg")[1] == before[0]
    assert prints("pkg")[0] not in before


def test_fingerprints_do_not_depend_on_the_folder_a_run_starts_in(pack, tree, graphlint, monkeypatch):
    pack({})
    root = tree({"pyproject.toml": "", "pkg/a.py": "bad = 1\n"})

    def prints():
        return [f["fingerprint"] for f in json.loads(graphlint("check", ".", "--output-format", "json").stdout)["findings"]]

    above = prints()
    monkeypatch.chdir(root / "pkg")
    assert prints() == above
