import pytest


def test_the_nearest_configuration_applies_and_the_command_line_wins(pack, tree, graphlint, tmp_path, monkeypatch):
    pack({}, {"id": "XX202", "name": "worse-name", "word": "worse"})
    (tmp_path / "graphlint.toml").unlink()
    tree({
        "pyproject.toml": '[tool.graphlint]\nrule-packs = ["house"]\nselect = ["XX1"]\nexclude = ["b.py"]\n',
        "pkg/a.py": "bad = 1\nworse = 1\n", "b.py": "bad = 1\n", "a.py": "",
    })
    lines = graphlint("check", ".", "--output-format", "concise").stdout.splitlines()
    assert lines[0].startswith("pkg/a.py:1:1: error[XX101]")
    assert "checked 4 files" in lines[1]  # two rules, two sources
    assert "error[XX202]" in graphlint("check", ".", "--select", "XX2", "--output-format", "concise").stdout
    assert graphlint("check", ".", "--no-config").returncode == 0
    excluded = graphlint("check", "b.py")
    assert excluded.returncode == 0
    assert "checked 0 files" in excluded.stdout


def test_rules_can_be_ignored_per_file(pack, tree, graphlint):
    pack({})
    tree({
        "graphlint.toml": 'rule-packs = ["house"]\n[per-file-ignores]\n"pkg/*.py" = ["XX1"]\n',
        "pkg/a.py": "bad = 1\n", "a.py": "bad = 1\n",
    })
    assert graphlint("check", ".", "--output-format", "concise").stdout.splitlines()[0].startswith("a.py:1:1")


@pytest.mark.parametrize(("text", "message"), [
    ('slect = ["GL2"]\n', "graphlint.toml: unknown key slect; did you mean select?"),
    ("select = 3\n", "graphlint.toml: Expected `array`, got `int` - at `select`"),
    ("select = [\n", "graphlint.toml: not valid TOML"),
    ('rule-packs = ["gone"]\n', "gone: no such folder"),
    ('[per-file-ignores]\n"a.py" = ["QQ1"]\n', "no rule matches 'QQ1'"),
])
def test_mistakes_name_file_and_key(tree, graphlint, text, message):
    tree({"graphlint.toml": text, "a.py": ""})
    result = graphlint("check", ".")
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_another_configuration_can_be_named(pack, tree, graphlint):
    pack({})
    tree({"strict.toml": 'min-confidence = "sure"\n', "a.py": ""})
    result = graphlint("check", ".", "--config", "strict.toml")
    assert result.returncode == 2
    assert "strict.toml: Invalid enum value 'sure' - at `min-confidence`" in result.stderr
