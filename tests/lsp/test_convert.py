"""Fixes as edits, in the client's units."""

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.workspace import PositionCodec

from graphlint.finding import Edit, Finding, Fix
from graphlint.lsp.convert import Converter, overlaps, path_of, uri_of
from graphlint.lsp.server import _actions

LINES = ["def f():", "    x = '😋'; y = 1", "    return"]


@pytest.fixture
def converter():
    return Converter(PositionCodec(), lambda path: LINES)


def finding(**changes):
    return Finding(**({
        "rule": "GL301", "name": "stale-tail", "severity": "error", "confidence": "high", "path": "a.py", "line": 2, "message": "m",
    } | changes))


def test_ranges(converter):
    assert converter.range("a.py", 2, 1, 0, 0) == types.Range(types.Position(1, 4), types.Position(1, 19))
    assert converter.range("a.py", 2, 14, 2, 19) == types.Range(types.Position(1, 14), types.Position(1, 19))
    assert converter.range("a.py", 9, 1, 0, 0) == types.Range(types.Position(8, 0), types.Position(8, 0))
    here = types.Range(types.Position(1, 5), types.Position(1, 5))
    assert overlaps(converter.range("a.py", 2, 1, 0, 0), here)
    assert not overlaps(converter.range("a.py", 3, 1, 0, 0), here)


def test_a_fix_is_an_action_and_a_safe_one_is_preferred(converter):
    for applicability, title, preferred in (("safe", "graphlint: fill it", True), ("unsafe", "graphlint: fill it (unsafe)", False)):
        one = finding(fix=Fix(applicability, "fill it", [Edit("a.py", 2, 14, 2, 19, "z = 2")]))
        fix, ignore = _actions(one, converter.diagnostic(one), converter)
        assert (fix.title, fix.is_preferred) == (title, preferred)
        assert fix.edit.changes == {
            uri_of("a.py"): [types.TextEdit(types.Range(types.Position(1, 14), types.Position(1, 19)), "z = 2")],
        }
        assert ignore.title == "graphlint: ignore GL301 here"


def test_a_suggestion_for_display_is_no_edit(converter):
    one = finding(fix=Fix("display", "think", [Edit("a.py", 2, 1, 2, 1, "x")]))
    assert [action.title for action in _actions(one, converter.diagnostic(one), converter)] == ["graphlint: ignore GL301 here"]


def test_paths():
    assert path_of("file:///x/a.py") == "/x/a.py"
    assert path_of("file:///x/a.txt") is None
    assert path_of("untitled:a.py") is None
