"""What a terminal gets and a pipe does not: colour, and a progress line when a run takes long."""

import io
import time

from graphlint.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(monkeypatch, stream, seconds):
    clock = iter(seconds)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with Progress() as progress:
        for done in range(3):
            progress("reading", done, 9)
    return stream.getvalue()


def test_short_runs_and_pipes_show_no_progress(monkeypatch):
    assert run(monkeypatch, Terminal(), [0, 0.2, 0.4, 0.9]) == ""
    assert run(monkeypatch, io.StringIO(), [0, 2, 3, 4]) == ""


def test_long_runs_show_a_line_and_wipe_it(monkeypatch):
    first, last = "graphlint: reading (0/9)", "graphlint: reading (2/9)"
    # the second call comes too soon after the first to be shown
    assert run(monkeypatch, Terminal(), [0, 1.5, 1.5, 1.55, 2, 2]) == f"\r{first}\r{last}\r{' ' * len(last)}\r"


def test_colour_is_for_terminals_and_for_those_who_ask(pack, tree, graphlint):
    pack({})
    tree({"a.py": "bad = 1\n"})
    assert "\x1b[" not in graphlint("check", "a.py").stdout
    assert "\x1b[" in graphlint("check", "a.py", env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" not in graphlint("check", "a.py", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert "\x1b[" not in graphlint("check", "a.py", "--output-format", "json", env={"FORCE_COLOR": "1"}).stdout
