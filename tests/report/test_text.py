import re

from graphlint.finding import Finding, TracePoint
from graphlint.report import concise, text
from graphlint.source.files import SourceFile, SourceText

STALE_TAIL = """\
error[GL301]: `self.seq_lens` is written for live requests only
 --> engine/runner.py:6:9
  |
3 |         self.seq_lens = torch.zeros(max_num_reqs)
  |         ----------------------------------------- 1. max_num_reqs lanes
...
6 |         self.seq_lens[:num_reqs].copy_(lens)
  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 2. written: lanes 0 to num_reqs
7 |         return Metadata(seq_lens=self.seq_lens[:num_reqs_padded])
  |                                  ------------------------------- 3. read: lanes 0 to num_reqs_padded
 ::: engine/attention.py:2:37
  |
2 |     kernel[(metadata.num_reqs_padded,)](metadata.seq_lens)
  |                                        ------------------- 4. one program a padded request
  |
  = in: Runner.prepare, buffer self.seq_lens
  = example: 12 requests, then 3 padded to 4: lane 3 still holds the length of request 3 of the step before.
  = safe fix: fill the tail
  = rule: stale-tail, high confidence; `graphlint rule GL301` explains it"""

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_a_finding_with_its_trace_through_two_files(stale_tail, sources):
    assert text.render_finding(stale_tail, sources, color=False) == STALE_TAIL


def test_colour_changes_nothing_but_colour(stale_tail, sources):
    coloured = text.render_finding(stale_tail, sources, color=True)
    assert coloured != STALE_TAIL
    assert ANSI.sub("", coloured) == STALE_TAIL


def test_the_whole_output_ends_with_a_summary(outcome):
    lines = text.render(outcome, color=False).splitlines()
    assert lines[0] == "warning[GL204]: n - 1 may be -1"
    assert lines[-2:] == [
        "",
        "Found 2 problems (1 error, 1 warning) in 2 files; checked 3 files in 0.2 s (1 error on the way, see above; "
        "1 below the confidence or severity asked for; 2 suppressed by comments).",
    ]


def test_concise_output(outcome):
    assert concise.render(outcome, color=False).splitlines()[:2] == [
        "engine/attention.py:2:1: warning[GL204] n - 1 may be -1",
        "engine/runner.py:6:9: error[GL301] `self.seq_lens` is written for live requests only (Runner.prepare)",
    ]


def frame_of(source, **place):
    finding = Finding(rule="GL301", name="stale-tail", severity="error", confidence="high", path="a.py", message="m", **place)
    return text.render_finding(finding, SourceText([SourceFile("a.py", source.encode())]), color=False).splitlines()[2:-2]


def test_a_finding_without_a_range_marks_its_statement():
    assert frame_of("if x:\n    y = 1  \n", line=2) == ["  |", "2 |     y = 1", "  |     ^^^^^"]


def test_a_range_of_several_lines_marks_the_first():
    assert frame_of("y = f(\n    1,\n)\n", line=1, column=5, end_line=3, end_column=2) == ["  |", "1 | y = f(", "  |     ^^"]


def test_wide_characters_take_two_columns():
    assert frame_of("名 = bad\n", line=1, column=5, end_line=1, end_column=8) == ["  |", "1 | 名 = bad", "  |      ^^^"]


def test_very_long_lines_are_cut_around_the_span():
    source = "x = [" + "1, " * 100_000 + "bad" + ", 2" * 100 + "]\n"
    column = source.index("bad") + 1
    shown = frame_of(source, line=1, column=column, end_line=1, end_column=column + 3)
    assert max(map(len, shown)) < 160
    start = shown[2].index("^^^")
    assert shown[1][start : start + 3] == "bad"


def test_places_that_cannot_be_read_keep_their_label():
    trace = [TracePoint("a.py", 1, "here"), TracePoint("gone.py", 7, "there")]
    shown = frame_of("x = 1\n", line=1, trace=trace)
    assert shown == ["  |", "1 | x = 1", "  | ^^^^^ 1. here", " ::: gone.py:7:1", "  |", "7 | 2. there"]


def test_one_line_between_two_labels_is_shown_and_more_are_elided():
    trace = [TracePoint("a.py", 3, "three"), TracePoint("a.py", 6, "six")]
    assert frame_of("a\nb\nc\nd\ne\nf\n", line=1, trace=trace) == [
        "  |", "1 | a", "  | ^", "2 | b", "3 | c", "  | - 1. three", "...", "6 | f", "  | - 2. six",
    ]
