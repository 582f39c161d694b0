"""Facts survive the way into the cache and back, for every source of this project."""

import ast
from pathlib import Path

import pytest
from engine_fixtures import ENGINES

from graphlint.facts.extract import module_name
from graphlint.facts.model import FileFacts
from graphlint.facts.wire import decode, encode
from graphlint.project.load import file_facts

ROOT = ENGINES.parents[1]
SOURCES = [path for folder in ("graphlint", "rules", "kernels", "fixtures") for path in sorted((ROOT / folder).rglob("*.py"))]


def facts_of(path: Path) -> FileFacts:
    name = path.relative_to(ROOT).as_posix()
    facts = file_facts(name, module_name(name), path.read_bytes())
    assert isinstance(facts, FileFacts)
    return facts


@pytest.mark.parametrize("folder", ["graphlint", "rules", "kernels", "fixtures"])
def test_facts_come_back_equal(folder):
    sources = [path for path in SOURCES if path.relative_to(ROOT).parts[0] == folder]
    assert sources
    for path in sources:
        facts = facts_of(path)
        assert decode(encode(facts)) == facts, path


def test_the_same_source_gives_the_same_bytes_of_facts():
    """Keys are content hashes, so two machines and two runs must agree."""
    for path in sorted(ENGINES.rglob("*.py")):
        assert facts_of(path) == facts_of(path)


def test_every_function_class_and_import_of_a_file_is_there():
    """Counted from the syntax tree, nested functions and lambdas of functions that matter included."""
    path = ENGINES / "block_tables" / "tables.py"
    tree, facts = ast.parse(path.read_text()), facts_of(path)
    assert {cls.qualname for cls in facts.classes} == {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    named = {function.name for function in facts.functions if not function.name.startswith("<")}
    assert named == {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert sum(function.name == "<lambda>" for function in facts.functions) == 1
    assert facts.imports == (("torch", "torch", None), ("triton", "triton", None), ("tl", "triton.language", None))
    assert {kernel.qualname for kernel in facts.kernels} == {
        "gather_rows_kernel", "state_kernel", "spread_kernel", "blocked_kernel", "PositionHelper.positions_kernel",
    }


@pytest.mark.parametrize("data", [b"", b"x", b"\x00" * 40])
def test_bytes_that_are_no_facts_are_refused(data):
    with pytest.raises((ValueError, TypeError, EOFError)):
        decode(data)
