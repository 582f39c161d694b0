import json
import subprocess
import sys

from graphlint import __version__


def test_version(graphlint, graphlint_process):
    assert graphlint("--version").stdout == graphlint_process("--version").stdout == f"graphlint {__version__}\n"


def test_a_process_ends_with_the_exit_status(pack, tree, graphlint_process):
    pack({})
    tree({"a.py": "bad = 1\n"})
    result = graphlint_process("check", ".", "--output-format", "concise")
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout.startswith("a.py:1:1: error[XX101] assigns bad (f)\nFound 1 problem (1 error) in 1 file; checked 2 files in ")


def test_help_lists_the_commands_and_teaches_by_example(graphlint):
    text = graphlint("--help").stdout
    assert "check" in text
    assert "graphlint check vllm/" in text
    assert "Exit status" in text
    assert "graphlint check --select" in graphlint("check", "--help").stdout


def test_a_path_or_a_mistyped_command_gets_a_hint(graphlint):
    assert "Did you mean 'check'?" in graphlint("chek").stderr
    result = graphlint("src/engine.py")
    assert result.returncode == 2
    assert "graphlint check src/engine.py" in result.stderr


def test_rule_pages_come_from_docstrings(pack, tree, graphlint):
    pack({})
    page = graphlint("rule", "xx101")
    assert page.returncode == 0
    assert page.stdout.startswith("# XX101 bad-name\n\nerror, stable, since 0.1.0\n\nReports names that start with bad.\n")
    assert graphlint("rule", "bad-name").stdout == page.stdout
    assert any(line.split()[:3] == ["XX101", "bad-name", "error"] for line in graphlint("rule").stdout.splitlines())
    listed = {one["id"]: one for one in json.loads(graphlint("rule", "--output-format", "json").stdout)}
    assert listed["XX101"]["summary"] == "Reports bad names."
    assert listed["XX101"]["family"] == "family"
    assert listed["GL001"]["name"] == "unused-suppression"


def test_an_unknown_rule_page(graphlint, tree):
    tree({})
    result = graphlint("rule", "unused-supression")
    assert result.returncode == 2
    assert "did you mean unused-suppression?" in result.stderr


def test_start_up_stays_light():
    """`--version` imports no third-party module, `--help` none but click."""
    code = "import sys, runpy; sys.argv = ['graphlint', {arg!r}]\ntry: runpy.run_module('graphlint', run_name='__main__')\n" \
           "except SystemExit: pass\nprint(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    heavy = {"click", "msgspec", "libcst", "rich", "pathspec", "ruamel", "torch", "sqlite3", "multiprocessing"}
    for argument, allowed in (("--version", []), ("--help", ["click"])):
        script = code.format(arg=argument, heavy=heavy)
        result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        loaded = result.stderr.strip().splitlines()[-1]
        assert loaded == str(allowed)
