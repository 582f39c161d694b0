"""`graphlint test-rules`: the examples of a pack of one's own."""

from pathlib import Path

HOUSE = Path(__file__).parents[2] / "docs/examples/house_rules"
RULE = '''
"""Reports `bad`."""
from graphlint.api import Example, Finding, Rule

def check(project):
    for file in project.files:
        for number, line in enumerate(open(file.path), 1):
            if line.startswith("bad"):
                yield Finding(rule="HS102", name="bad-name", severity="error", confidence="low", path=file.path, line=number,
                              message="bad", buffer="b")

RULE = Rule(id="HS102", name="bad-name", summary="x", severity="error", since="1.0.0", tokens=(b"bad",), check=check,
            bad=(BAD), good=(GOOD))
'''


def write(tree, bad, good):
    tree({"house/bad_name.py": RULE.replace("BAD)", f"{bad})").replace("GOOD)", f"{good})")})


def test_the_pack_of_the_documentation(graphlint):
    result = graphlint("test-rules", str(HOUSE))
    assert result.returncode == 0
    assert result.stdout == "ok   HS101 host-sync-in-capture: 2 bad, 1 good\n1 rules, 3 examples, 0 failed\n"


def test_the_pack_of_the_documentation_in_a_check(tree, graphlint):
    source = "class Model:\n    def capture(self):\n        self.manager.capture(self.forward)\n\n    def forward(self, n):\n"
    tree({"graphlint.toml": f'rule-packs = ["{HOUSE.as_posix()}"]\n', "model.py": source + "        return self.x[:n].item()\n"})
    result = graphlint("check", ".", "--output-format", "concise")
    assert result.stdout.startswith("model.py:6:1: error[HS101] `self.x[:n].item()` waits for the GPU inside a captured function")


def test_examples_may_be_trees_and_low_confidence_counts(tree, graphlint):
    write(tree, 'Example("tree", {"pkg/a.py": "x = 1\\n", "pkg/b.py": "bad = 1\\n"}, ("b",)),', 'Example("ok", "x = 1\\n"),')
    result = graphlint("test-rules", "house", "--verbose")
    assert result.returncode == 0
    assert "ok   HS102 bad-name, bad example 'tree'\n  line 1: bad\n" in result.stdout


def test_what_is_wrong_is_named(tree, graphlint):
    write(tree, 'Example("silent", "x = 1\\n"), Example("no c", "bad = 1\\n", ("c",)),', 'Example("loud", "bad = 1\\n"),')
    result = graphlint("test-rules", "house")
    assert result.returncode == 1
    assert result.stdout.splitlines() == [
        "FAIL HS102 bad-name, bad example 'silent' is not reported",
        "FAIL HS102 bad-name, bad example 'no c' does not name c:", "  line 1: bad",
        "FAIL HS102 bad-name, good example 'loud' is reported:", "  line 1: bad",
        "1 rules, 3 examples, 3 failed",
    ]
    write(tree, "", 'Example("ok", "x = 1\\n"),')
    assert "FAIL HS102 bad-name: no bad example" in graphlint("test-rules", "house").stdout


def test_an_example_or_a_rule_that_does_not_parse_is_an_error(tree, graphlint):
    write(tree, 'Example("broken", "def bad(:\\n"),', 'Example("ok", "x = 1\\n"),')
    result = graphlint("test-rules", "house")
    assert result.returncode == 2
    assert "ERROR HS102 bad-name, bad example 'broken': does not parse" in result.stdout
    tree({"house/other.py": "1 +\n"})
    result = graphlint("test-rules", "house")
    assert result.returncode == 2
    assert "house/other.py:1: the rule cannot be loaded" in result.stderr
    tree({"empty/readme.txt": ""})
    assert "no rule in empty" in graphlint("test-rules", "empty").stderr
