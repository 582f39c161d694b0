"""Findings on a small engine, and an outcome that reports them."""

from __future__ import annotations

import pytest

from graphlint.finding import Edit, Finding, Fix, Report, RunError, Stats, TracePoint, Witness
from graphlint.fingerprints import set_fingerprints
from graphlint.runner import Outcome
from graphlint.source.discovery import Discovery
from graphlint.source.files import SourceFile, SourceText

RUNNER = """\
class Runner:
    def __init__(self, max_num_reqs):
        self.seq_lens = torch.zeros(max_num_reqs)

    def prepare(self, num_reqs, num_reqs_padded, lens):
        self.seq_lens[:num_reqs].copy_(lens)
        return Metadata(seq_lens=self.seq_lens[:num_reqs_padded])
"""
ATTENTION = "def forward(self, metadata):\n\tkernel[(metadata.num_reqs_padded,)](metadata.seq_lens)\n"


@pytest.fixture
def sources():
    return SourceText([SourceFile("engine/runner.py", RUNNER.encode()), SourceFile("engine/attention.py", ATTENTION.encode())])


@pytest.fixture
def stale_tail():
    return Finding(
        rule="GL301", name="stale-tail", severity="error", confidence="high", path="engine/runner.py", line=6, column=9, end_line=6,
        end_column=45, symbol="Runner.prepare", buffer="self.seq_lens", message="`self.seq_lens` is written for live requests only",
        trace=[
            TracePoint("engine/runner.py", 3, "max_num_reqs lanes", 9),
            TracePoint("engine/runner.py", 6, "written: lanes 0 to num_reqs", 9, 6, 45),
            TracePoint("engine/runner.py", 7, "read: lanes 0 to num_reqs_padded", 34, 7, 65),
            TracePoint("engine/attention.py", 2, "one program a padded request", 37, 2, 56),
        ],
        witness=Witness(
            [{"live": 12, "padded": 12, "unit": "requests"}, {"live": 3, "padded": 4, "unit": "requests"}], [3, 4],
            "12 requests, then 3 padded to 4: lane 3 still holds the length of request 3 of the step before.",
        ),
        fix=Fix("safe", "fill the tail", [Edit("engine/runner.py", 6, 45, 6, 45, "\n        self.seq_lens[num_reqs:].fill_(0)")]),
    )


@pytest.fixture
def outcome(sources, stale_tail):
    """Two findings, one error, something hidden and something suppressed."""
    short = Finding(rule="GL204", name="unclamped-decrement", severity="warning", confidence="medium", path="engine/attention.py",
                    line=2, message="n - 1 may be -1")
    findings = [short, stale_tail]
    set_fingerprints(findings, sources)
    report = Report(findings, [RunError("engine/old.py", "syntax", "does not parse", 4)], Stats(3, 2, 1, 0.25))
    return Outcome(report, Discovery([], [], []), sources, suppressed=2, hidden=1)
