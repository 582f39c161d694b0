"""Pad stores in kernels of the shapes that engines have: beside a sibling, in a loop of their own, in an extra program, a wider mask."""

from __future__ import annotations

import ast

import pytest

from graphlint.finding import Finding, TracePoint
from graphlint.fix import fix_of
from graphlint.fix.apply import apply_edits

HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
PARAMS = "(rows_ptr, lens_ptr, offsets_ptr, query_start_loc_ptr, max_num_reqs, BLOCK: tl.constexpr)"
BODY = """\
    req = tl.program_id(0)
    n = tl.num_programs(0)
    start = tl.load(query_start_loc_ptr + req)
    end = tl.load(query_start_loc_ptr + req + 1)
    tl.store(rows_ptr + req, end - 1)  # the row
    tl.store(lens_ptr + req, end - start)
    tl.store(offsets_ptr + req, start)
"""
PAD = """\
    if req == n - 1:
        for i in range(n, max_num_reqs, BLOCK):
            lanes = i + tl.arange(0, BLOCK)
            mask = lanes < max_num_reqs
            tl.store(lens_ptr + lanes, 0, mask=mask)
"""


def fixed(text: str, mark: str, buffer: str, meaning: str, rule: str = "GL201", trace: int = 0) -> tuple[str, str]:
    """(lines that the fix adds, its applicability) for a finding on the first line that holds `mark`."""
    lines = text.split("\n")
    line = next(number for number, part in enumerate(lines, 1) if mark in part)
    points = [TracePoint("k.py", trace, "stored here")] if trace else []
    one = Finding(
        rule=rule, name="x", severity="error", confidence="high", path="k.py", line=line, message=f"`{buffer}` ({meaning})", buffer=buffer,
        trace=points,
    )
    fix = fix_of(one, lambda path: lines)
    assert fix is not None
    after = apply_edits(text, fix.edits)
    ast.parse(after)
    old = list(lines)
    added = []
    for part in after.split("\n"):
        if part in old:
            old.remove(part)
        else:
            added.append(part.strip())
    return "\n".join(added), fix.applicability


def kernel(body: str) -> str:
    return HEAD + f"def prepare{PARAMS}:\n" + body


def test_a_store_beside_the_sibling_that_is_padded() -> None:
    assert fixed(kernel(BODY + PAD), "# the row", "rows_ptr", "gather index") == ("tl.store(rows_ptr + lanes, 0, mask=mask)", "safe")


def test_offsets_repeat_the_last_one_and_have_one_lane_more() -> None:
    added, applicability = fixed(kernel(BODY + PAD), "offsets_ptr + req", "query_start_loc", "indptr")
    assert applicability == "safe"
    assert added.split("\n") == [
        "for pad_start in range(n, max_num_reqs + 1, BLOCK):", "pad_lanes = pad_start + tl.arange(0, BLOCK)",
        "tl.store(offsets_ptr + pad_lanes, end, mask=pad_lanes < max_num_reqs + 1)",
    ]


def test_a_loop_in_the_last_program_where_nothing_pads_yet() -> None:
    added, _ = fixed(kernel(BODY), "# the row", "rows_ptr", "gather index")
    assert added.startswith("if req == tl.num_programs(0) - 1:\nfor pad_start in range(tl.num_programs(0), max_num_reqs, BLOCK):")


def test_an_extra_program_pads_before_it_returns() -> None:
    extra = BODY.replace("    n = tl.num_programs(0)\n", "    if req == tl.num_programs(0) - 1:\n        return\n")
    added, _ = fixed(kernel(extra), "offsets_ptr + req", "query_start_loc", "indptr")
    assert added.split("\n")[0] == "for pad_start in range(req, max_num_reqs + 1, BLOCK):"
    assert "tl.store(offsets_ptr + pad_lanes, tl.load(query_start_loc_ptr + req), mask" in added


def test_a_mask_as_wide_as_the_siblings() -> None:
    body = """\
    i = tl.program_id(0)
    is_real = i < raw_bs
    in_bs = i < bs
    rpi = tl.load(src_ptr + i, mask=is_real, other=0)
    tl.store(req_pool_indices_ptr + i, rpi, mask=is_real)
    tl.store(lens_ptr + i, 1, mask=in_bs)
"""
    text = HEAD + "def fill(req_pool_indices_ptr, lens_ptr, src_ptr, raw_bs, bs):\n" + body
    added, applicability = fixed(text, "req_pool_indices_ptr + i", "req_pool_indices", "state index")
    assert (added, applicability) == ("tl.store(req_pool_indices_ptr + i, rpi, mask=in_bs)", "safe")


def test_a_state_index_gets_a_sentinel_that_a_person_must_agree_to() -> None:
    text = kernel(BODY + PAD).replace("rows_ptr", "idx_mapping_ptr")
    assert fixed(text, "# the row", "idx_mapping", "gather index") == ("tl.store(idx_mapping_ptr + lanes, -1, mask=mask)", "unsafe")


def test_an_early_return_stores_the_row_it_skips() -> None:
    body = """\
    i = tl.program_id(0)
    if tl.load(valid_ptr + i) == 0:
        tl.store(lens_ptr + i, 0)
        return
    tl.store(lens_ptr + i, 3)
    for j in range(0, width, BLOCK):
        lanes = j + tl.arange(0, BLOCK)
        ids = tl.load(table_ptr + lanes)
        tl.store(indices_ptr + i * width + lanes, ids, mask=lanes < width)
"""
    text = HEAD + "def gather(lens_ptr, indices_ptr, valid_ptr, table_ptr, width, BLOCK: tl.constexpr):\n" + body
    line = text[: text.index("tl.store(indices_ptr")].count("\n") + 1
    added, applicability = fixed(text, "        return", "indices_ptr", "gather index", "GL203", line)
    assert applicability == "safe"
    assert added.split("\n")[-1] == "tl.store(indices_ptr + i * width + lanes, -1, mask=lanes < width)"


@pytest.mark.parametrize("body", [
    BODY.replace("rows_ptr + req, end", "rows_ptr + end, end"),  # a scatter: the lanes of the padding are not known
    BODY.replace("# the row", "# the row").replace("    n = tl", "    if start > 9:\n        return\n    n = tl"),  # the last one may leave
])
def test_no_fix_where_it_is_not_certain(body: str) -> None:
    lines = kernel(body).split("\n")
    line = next(number for number, part in enumerate(lines, 1) if "# the row" in part)
    one = Finding(rule="GL201", name="x", severity="error", confidence="high", path="k.py", line=line, message="", buffer="rows_ptr")
    assert fix_of(one, lambda path: lines) is None
