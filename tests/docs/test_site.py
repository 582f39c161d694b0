"""The documentation: it builds without a warning, its pictures are pictures, its claims about commands are true."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from graphlint import registry

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_every_rule_has_a_page_and_the_list_leads_to_it(site):
    listed = (site / "rules/index.html").read_text()
    for entry in registry.load():
        page = (site / "rules" / entry.rule.id / "index.html").read_text()
        assert entry.rule.name in page
        assert "Why it fails under graphs" in page
        assert f'href="{entry.rule.id}/"' in listed


def test_the_settings_are_listed_with_their_meaning(site):
    page = (site / "configuration/index.html").read_text()
    assert "<!-- settings -->" not in page
    assert "<code>min-confidence</code>" in page
    assert "Report nothing less sure than this." in page


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        foreign = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:[^"]+)"', page.read_text())
        assert [url for url in foreign if 'rel="canonical"' not in url] == []


@pytest.mark.parametrize("picture", sorted(DOCS.glob("images/*.svg")), ids=lambda path: path.stem)
def test_pictures_have_a_description(picture):
    root = ElementTree.parse(picture).getroot()
    assert root.get("role") == "img"
    assert root.find("{http://www.w3.org/2000/svg}title").text == root.get("aria-label")


def test_the_gitlab_snippet_follows_gitlabs_schema():
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.gitlab-ci", str(DOCS / "examples/gitlab-ci.yml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


PAGES = [path for path in sorted(DOCS.glob("*.md")) if path.name not in ("accuracy.md", "validate.md", "config.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_commands_and_options_that_a_page_names_exist(page, graphlint):
    known = graphlint("--help").stdout
    text = page.read_text()
    commands = set(re.findall(r"graphlint ((?:baseline |config-file )?[a-z][a-z-]+)\b(?=[^\n]*`|[^\n]*$)", "\n".join(_code(text))))
    for command in commands:
        assert graphlint(*command.split(), "--help").returncode == 0, command
        assert command.split()[0] in known
    options = set(re.findall(r"graphlint check[^`\n#]*?(--[a-z-]+)", "\n".join(_code(text))))
    helped = graphlint("check", "--help").stdout
    assert [option for option in options if option not in helped] == []


def _code(text):
    """Code spans, and lines of console and text fences that are commands."""
    yield from re.findall(r"`(graphlint [^`\n]+)`", text)
    yield from re.findall(r"^\$ (graphlint .+)$", text, re.MULTILINE)


def test_the_configuration_of_the_page_is_accepted(tree, graphlint):
    text = (DOCS / "configuration.md").read_text()
    block = re.search(r'```toml title="graphlint.toml"\n(.*?)```', text, re.DOTALL)[1]
    root = tree({"graphlint.toml": block, "graphlint-baseline.txt": "", "a.py": "x = 1\n"})
    shutil.copytree(DOCS / "examples/house_rules", root / "tools/graphlint_rules")
    result = graphlint("check")
    assert (result.returncode, result.stderr) == (0, "")


def test_the_quick_start_shows_what_the_command_prints(tree, graphlint):
    sys.path.insert(0, str(ROOT / "tests/cli"))
    from engine import FILES

    tree(FILES)
    shown = re.search(r"```text\n(error.*?)```", (DOCS / "index.md").read_text(), re.DOTALL)[1]
    printed = graphlint("check", "engine").stdout.partition("\n\nFound")[0]
    assert " ".join(printed.split()) == " ".join(shown.split())
