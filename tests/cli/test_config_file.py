import json
import sys
from pathlib import Path

import jsonschema
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from engine import FILES


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


def test_severities_can_be_overridden_and_the_longest_selector_wins(pack, tree, graphlint):
    pack({}, {"id": "XX102", "name": "worse-name", "word": "worse"})
    tree({
        "graphlint.toml": 'rule-packs = ["house"]\n[severities]\nXX102 = "warning"\nXX1 = "info"\n', "a.py": "bad = 1\nworse = 1\n",
    })
    lines = graphlint("check", "a.py", "--output-format", "concise").stdout.splitlines()
    assert [line.split()[1] for line in lines[:2]] == ["info[XX101]", "warning[XX102]"]
    tree({"graphlint.toml": '[severities]\nGL999 = "info"\n'})
    assert "no rule matches 'GL999'" in graphlint("check", "a.py").stderr
    tree({"graphlint.toml": '[severities]\nGL301 = "fatal"\n'})
    assert "graphlint.toml: Invalid enum value 'fatal' - at `severities[...]`" in graphlint("check", "a.py").stderr


def test_show_says_where_a_setting_comes_from(tree, graphlint, tmp_path, monkeypatch):
    tree({
        "pyproject.toml": '[project]\nname = "select"\nignore = 1\n\n[tool.graphlint]\nselect = ["GL3"]\n[tool.graphlint'
                          '.per-file-ignores]\n"a.py" = ["GL301"]\n\n[tool.other]\nseverity = 1\n',
        "sub/x.txt": "",
    })
    monkeypatch.chdir(tmp_path / "sub")
    rows = {row["key"]: row for row in json.loads(graphlint("config-file", "show", "--output-format", "json").stdout)["settings"]}
    assert rows["select"] == {"key": "select", "value": ["GL3"], "file": "../pyproject.toml", "line": 6}
    assert rows["per-file-ignores"] == {"key": "per-file-ignores", "value": {"a.py": ["GL301"]}, "file": "../pyproject.toml", "line": 7}
    assert rows["severity"] == {"key": "severity", "value": None, "file": None, "line": None}
    text = graphlint("config-file", "show").stdout
    assert "configuration: ../pyproject.toml\n" in text
    assert '["GL3"]' in next(line for line in text.splitlines() if line.startswith("  select"))
    assert "  ../pyproject.toml:6\n" in text
    tree({"sub/graphlint.toml": "selct = 1\n"})
    assert "unknown key selct; did you mean select?" in graphlint("config-file", "show").stderr


def test_show_without_a_configuration(tree, graphlint):
    tree({"a.py": ""})
    assert graphlint("config-file", "show").stdout.startswith("configuration: none found here or above; these are the defaults\n")


def test_the_published_schema_is_current_and_agrees_with_what_is_accepted(graphlint, tree):
    published = json.loads((Path(__file__).parents[2] / "docs/schema/graphlint-config.schema.json").read_text())
    assert json.loads(graphlint("config-file", "schema").stdout) == published
    jsonschema.Draft202012Validator.check_schema(published)
    valid = jsonschema.Draft202012Validator(published).is_valid
    assert valid({"select": ["GL3"], "severity": "error", "per-file-ignores": {"a.py": ["GL301"]}, "baseline": "b.txt"})
    assert not valid({"slect": []})
    assert not valid({"min-confidence": "sure"})
    assert all("description" in key for key in published["properties"].values())


def test_init_writes_a_configuration_that_works(tree, graphlint):
    tree({"tests/test_a.py": "", "a.py": "x = 1\n", ".git/HEAD": ""})
    result = graphlint("init")
    assert result.returncode == 0
    assert "wrote graphlint.toml" in result.stdout
    assert "additional_dependencies: [vllm-graphlint]" in result.stdout
    assert '["tests/"]' in graphlint("config-file", "show").stdout
    assert graphlint("check").returncode == 0
    again = graphlint("init")
    assert again.returncode == 2
    assert "graphlint.toml configures graphlint already" in again.stderr


def test_init_can_extend_pyproject_and_record_a_baseline(tree, graphlint, tmp_path):
    tree(FILES)
    assert "there is no pyproject.toml here" in graphlint("init", "--pyproject").stderr
    tree({"pyproject.toml": '[project]\nname = "x"'})
    result = graphlint("init", "--pyproject", "--baseline")
    assert result.returncode == 0
    assert "graphlint-baseline.txt: 1 finding\n" in result.stdout
    assert (tmp_path / "pyproject.toml").read_text().startswith('[project]\nname = "x"\n\n[tool.graphlint]\n')
    assert graphlint("check").returncode == 0
    assert graphlint("init", "--pyproject").returncode == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(graphlint, shell):
    result = graphlint("completion", shell)
    assert result.returncode == 0
    assert "_GRAPHLINT_COMPLETE" in result.stdout


def test_completion_of_commands_and_formats(graphlint):
    env = {"_GRAPHLINT_COMPLETE": "bash_complete", "COMP_WORDS": "graphlint base", "COMP_CWORD": "1"}
    assert graphlint(env=env).stdout == "plain,baseline\n"
    env |= {"COMP_WORDS": "graphlint check --output-format s", "COMP_CWORD": "3"}
    assert graphlint(env=env).stdout == "plain,sarif\n"
