"""From a finding to a verdict: kernels with a known fault, their corrections, and kernels that nobody should run."""

from __future__ import annotations

import importlib.util
import time

import pytest

from graphlint.finding import Edit, Finding, Fix, Witness
from graphlint.validate.confirm import confirm, warm_jail
from graphlint.validate.sandbox import Limits
from graphlint.validate.verdict import Verdict
from graphlint.validate.warm import WarmJail

needs_triton = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "triton", "numpy")), reason="needs the `validate` extra"
)
JAILS: list[WarmJail] = []
HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
PAD = """\
    if req == tl.num_programs(0) - 1:
        for i in range(req + 1, max_num_reqs, BLOCK):
            lane = i + tl.arange(0, BLOCK)
            tl.store(rows_ptr + lane, 0, mask=lane < max_num_reqs)
"""
ROWS = (
    HEAD
    + """\
def last_rows(rows_ptr, query_start_loc_ptr, max_num_reqs, BLOCK: tl.constexpr):
    req = tl.program_id(0)
    tl.store(rows_ptr + req, tl.load(query_start_loc_ptr + req + 1) - 1)
{pad}

def prepare(rows, query_start_loc, num_reqs, max_num_reqs):
    last_rows[(num_reqs,)](rows, query_start_loc, max_num_reqs, BLOCK=16)
"""
)


def finding(text: str, kernel: str, buffer: str | None, rule: str = "GL201", **more: object) -> Finding:
    line = next((number for number, part in enumerate(text.split("\n"), 1) if part.startswith(f"def {kernel}(")), 1)
    return Finding(
        rule=rule, name="x", severity="error", confidence="high", path="k.py", line=line, symbol=kernel, message="", buffer=buffer, **more
    )  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def warm():
    """One import of torch for the module."""
    with warm_jail() as jail:
        JAILS[:] = [jail]
        yield jail
    JAILS.clear()


def judge(text: str, kernel: str, buffer: str | None, rule: str = "GL201", *, fixed: str | None = None, **more: object) -> Verdict:
    return confirm(
        finding(text, kernel, buffer, rule), {"k.py": text}, limits=Limits(seconds=60), quick=True,
        fixed={"k.py": fixed} if fixed else None, warm=JAILS[0], **more,
    )  # type: ignore[arg-type]


@needs_triton
def test_rows_written_for_live_requests_only_and_their_fix() -> None:
    verdict = judge(ROWS.format(pad=""), "last_rows", "rows_ptr", fixed=ROWS.format(pad=PAD))
    assert (verdict.result, verdict.fix) == ("confirmed", "verified")
    first = verdict.observations[0]
    assert (first.live, first.padded, first.lanes) == (3, 4, [3])
    # the older batch of 12 requests of 3 tokens left the last row of its fourth request there
    assert first.values == ["11"]
    assert verdict.evidence is not None
    assert verdict.evidence.seconds < 60
    assert verdict.evidence.versions["triton"]


@needs_triton
def test_the_padded_kernel_is_refuted_and_a_fix_that_changes_live_lanes_fails() -> None:
    broken = ROWS.format(pad=PAD).replace("+ 1) - 1)", "+ 1) - 2)")
    verdict = judge(ROWS.format(pad=PAD), "last_rows", "rows_ptr", fixed=broken)
    assert (verdict.result, verdict.fix) == ("refuted", "failed")
    assert any("live lane 0 of rows_ptr changed" in seen.text for seen in verdict.observations)


@needs_triton
def test_the_findings_own_fix_and_witness_are_used() -> None:
    text = ROWS.format(pad="")
    line = text[: text.index("\n\ndef prepare")].count("\n") + 1
    one = finding(
        text, "last_rows", "rows_ptr",
        witness=Witness(steps=[{"live": 7, "padded": 7}, {"live": 2, "padded": 5, "unit": "requests"}], stale=[2, 5], text=""),
        fix=Fix(applicability="unsafe", title="pad", edits=[Edit(path="k.py", line=line, column=1, end_line=line, end_column=1, text=PAD)]),
    )
    verdict = confirm(one, {"k.py": text}, limits=Limits(seconds=60), quick=True)
    assert (verdict.result, verdict.fix) == ("confirmed", "verified")
    assert (verdict.observations[0].live, verdict.observations[0].lanes) == (2, [2, 3, 4])


@needs_triton
@pytest.mark.parametrize(("first", "result"), [("num_tokens", "confirmed"), ("tl.load(query_start_loc_ptr + req)", "refuted")])
def test_a_tail_that_starts_at_the_padded_count(first: str, result: str) -> None:
    text = (
        HEAD
        + f"""\
def slots(slot_mapping_ptr, query_start_loc_ptr, num_tokens, max_num_tokens, BLOCK: tl.constexpr):
    req = tl.program_id(0)
    if req == tl.num_programs(0) - 1:
        for i in range({first}, max_num_tokens, BLOCK):
            lane = i + tl.arange(0, BLOCK)
            tl.store(slot_mapping_ptr + lane, -1, mask=lane < max_num_tokens)
        return
    for i in range(tl.load(query_start_loc_ptr + req), tl.load(query_start_loc_ptr + req + 1)):
        tl.store(slot_mapping_ptr + i, i + 100)


def prepare(slot_mapping, query_start_loc, num_reqs, num_tokens, max_num_tokens):
    slots[(num_reqs + 1,)](slot_mapping, query_start_loc, num_tokens, max_num_tokens, BLOCK=16)
"""
    )
    assert judge(text, "slots", "slot_mapping_ptr", "GL202").result == result


@needs_triton
@pytest.mark.parametrize(("clear", "result"), [("", "confirmed"), ("tl.store(window_ptr + pid * window_stride + lane, -1)", "refuted")])
def test_an_early_return_that_leaves_a_row_stale(clear: str, result: str) -> None:
    text = (
        HEAD
        + f"""\
def window(window_ptr, window_stride, lens_ptr, is_valid_token_ptr, WIDTH: tl.constexpr):
    pid = tl.program_id(0)
    lane = tl.arange(0, WIDTH)
    if not tl.load(is_valid_token_ptr + pid):
        tl.store(lens_ptr + pid, 0)
        {clear}
        return
    tl.store(lens_ptr + pid, WIDTH)
    tl.store(window_ptr + pid * window_stride + lane, lane + pid)


def prepare(window_indices, lens, is_valid_token, num_tokens):
    window[(num_tokens,)](window_indices, window_indices.stride(0), lens, is_valid_token, WIDTH=8)
"""
    )
    verdict = judge(text, "window", "window_ptr", "GL203")
    assert verdict.result == result
    if result == "confirmed":
        assert verdict.observations[0].lanes == [3]


@needs_triton
@pytest.mark.parametrize(("index", "result"), [("count - 1", "confirmed"), ("tl.maximum(count - 1, 0)", "refuted")])
def test_an_unclamped_decrement_reads_before_the_table(index: str, result: str) -> None:
    text = (
        HEAD
        + f"""\
def pick(out_ptr, block_table_ptr, num_accepted_ptr, table_stride):
    req = tl.program_id(0)
    count = tl.load(num_accepted_ptr + req)
    row_ptr = block_table_ptr
    tl.store(out_ptr + req, tl.load(row_ptr + {index}))


def prepare(out, block_table, num_accepted, num_reqs):
    pick[(num_reqs,)](out, block_table, num_accepted, 1)
"""
    )
    verdict = judge(text, "pick", "out_ptr", "GL204")
    assert verdict.result == result
    if result == "confirmed":
        assert "block_table_ptr[-1]" in verdict.reason


@needs_triton
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("while True:\n        tl.store(rows_ptr, 1)", "timeout"),
        ("print([bytearray(256 << 20) for _ in range(1000)])", "memory"),
        ("__import__('socket').socket()", "denied"),
        ("open('/tmp/graphlint-escape', 'w')", "denied"),
    ],
    ids=["endless loop", "allocation", "socket", "file"],
)
def test_a_hostile_kernel_gets_a_verdict(body: str, status: str) -> None:
    text = HEAD + f"def hostile(rows_ptr, num_reqs):\n    {body}\n    tl.store(rows_ptr + tl.program_id(0), 1)\n"
    started = time.monotonic()
    limits = Limits(seconds=12 if status == "timeout" else 60, memory=2 << 30)
    verdict = confirm(finding(text, "hostile", "rows_ptr"), {"k.py": text}, limits=limits, quick=True)
    assert verdict.result == "unsupported"
    assert verdict.reason.startswith(f"{status}: "), verdict.reason
    assert "as it is: 12 requests, then 3 padded to 4" in verdict.reason
    assert time.monotonic() - started < 70


def test_what_cannot_be_run_says_why() -> None:
    host = "def build(self, num_reqs):\n    self.rows[:num_reqs].copy_(rows)\n"
    assert "is host code" in judge(host, "build", "rows").reason
    assert "GL404 has no probe" in judge(host, "build", "rows", "GL404").reason
    unnamed = HEAD + "def two(a_ptr, b_ptr):\n    tl.store(a_ptr, 1)\n    tl.store(b_ptr, 1)\n"
    assert "which parameter of two is other" in judge(unnamed, "two", "other").reason
    helper = HEAD + "def k(a_ptr):\n    tl.store(a_ptr, magic(1))\n"
    verdict = judge(helper, "k", "a_ptr")
    assert (verdict.result, verdict.reason) == ("unsupported", "needs magic (used by k in k.py)")


@needs_triton
def test_a_plan_by_another_unit_is_shown_through_the_decode_with_the_findings_batches() -> None:
    one = Finding(
        rule="GL101", name="x", severity="error", confidence="high", path="k.py", line=1, message="rows = num_tokens",
        witness=Witness(steps=[{"live": 9, "padded": 9}, {"live": 5, "padded": 6}], stale=[5, 6], text=""),
    )
    verdict = confirm(one, {"k.py": ""}, limits=Limits(seconds=60))
    assert (verdict.kind, verdict.result, verdict.fix) == ("finding", "confirmed", "none")
    assert verdict.reason.startswith("by reproduction (stale-decode-offsets), not by running this code")
    assert {(seen.live, seen.padded) for seen in verdict.observations} == {(5, 6)}
    assert {tuple(seen.lanes) for seen in verdict.observations if seen.fault} == {(5,)}


@needs_triton
def test_a_warm_jail_takes_one_kernel_after_another_and_survives_hostile_ones(warm: WarmJail) -> None:
    hostile = HEAD + "def hostile(rows_ptr, num_reqs):\n    {body}\n    tl.store(rows_ptr + tl.program_id(0), 1)\n"
    good = ROWS.format(pad="")
    results = []
    for text, kernel in (
        (good, "last_rows"),
        (hostile.format(body="while True:\n        tl.store(rows_ptr, 1)"), "hostile"),
        (hostile.format(body="__import__('ctypes').string_at(0)"), "hostile"),
        (hostile.format(body="__import__('os').system('true')"), "hostile"),
        (good, "last_rows"),
    ):
        verdict = confirm(finding(text, kernel, "rows_ptr"), {"k.py": text}, limits=Limits(seconds=8), quick=True, warm=warm)
        results.append((verdict.result, verdict.reason.split(":")[0]))
        assert verdict.evidence is not None
        assert verdict.evidence.isolation.files in ("landlock", "audit-hook")
    assert [result for result, _ in results] == ["confirmed", "unsupported", "unsupported", "unsupported", "confirmed"]
    assert [reason for _, reason in results[1:4]] == ["timeout", "crash", "denied"]


@needs_triton
def test_a_scatter_to_request_slots_is_not_taken_for_padding() -> None:
    text = (
        HEAD
        + """\
def advance(num_computed_tokens_ptr, idx_mapping_ptr, query_start_loc_ptr):
    req = tl.program_id(0)
    slot = tl.load(idx_mapping_ptr + req)
    tl.store(num_computed_tokens_ptr + slot, tl.load(query_start_loc_ptr + req + 1))


def post_update(num_computed_tokens, idx_mapping, query_start_loc, num_reqs):
    advance[(num_reqs,)](num_computed_tokens, idx_mapping, query_start_loc)
"""
    )
    verdict = judge(text, "advance", "num_computed_tokens_ptr")
    assert verdict.result == "not-reproduced"
    assert "scatters to num_computed_tokens_ptr by a loaded index" in verdict.reason
