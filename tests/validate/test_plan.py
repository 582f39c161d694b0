"""Roles, launches and cases: what the harness makes of a kernel without running it."""

from __future__ import annotations

import pytest

from graphlint.validate import launch, plan, uses
from graphlint.validate.case import Step, evaluate
from graphlint.validate.extract import Unsupported, extract
from graphlint.validate.roles import count_of, pointer_role

SOURCE = """\
import triton
import triton.language as tl

PAD = -1


@triton.jit
def address(table_ptr, kind):
    return tl.cast(tl.load(table_ptr), tl.pointer_type(kind))


@triton.jit
def slots(
    slot_ptr, offsets_ptr, table_ptrs, hidden_ptr, hidden_stride, num_reqs, max_num_tokens, shift, FLAG: tl.constexpr, BLOCK: tl.constexpr
):
    req = tl.program_id(0)
    start = tl.load(offsets_ptr + req)
    end = tl.load(offsets_ptr + req + 1)
    page = tl.load(address(table_ptrs, tl.int64) + req)
    row_ptr = hidden_ptr + req * hidden_stride
    for i in range(start, end):
        tl.store(slot_ptr + i, page)
    tl.store(row_ptr + tl.arange(0, BLOCK), 0.0)
    if req == tl.num_programs(0) - 1:
        tl.store(slot_ptr + max_num_tokens - 1, PAD_VALUE)


PAD_VALUE = PAD


class Runner:
    def run(self, batch):
        live = batch.num_reqs
        slots[(live + 1,)](
            self.slot_mapping, batch.query_start_loc, self.tables, self.hidden, self.hidden.stride(0), live, self.max_num_tokens, shift=0,
            FLAG=self.x is not None, BLOCK=triton.next_power_of_2(live),
        )
"""


@pytest.fixture
def parts():
    kernel = extract("k.py", "slots", {"k.py": SOURCE}.get)
    return kernel, uses.read(kernel), launch.find("k.py", "slots", kernel.params, {"k.py": SOURCE}.get)


def test_uses_follow_aliases_and_helpers(parts) -> None:
    _, used, _ = parts
    assert used.pointers["offsets_ptr"].pairs
    assert used.pointers["offsets_ptr"].bounds
    assert used.pointers["table_ptrs"].inner == "int64"
    assert used.pointers["table_ptrs[]"].loads
    assert not used.pointers["table_ptrs[]"].stores
    assert used.aliases["row_ptr"] == ["hidden_ptr"]
    assert "hidden_stride" not in used.pointers
    assert used.extra == [0]


def test_a_launch_becomes_expressions_over_extents(parts) -> None:
    _, _, found = parts
    assert found is not None
    assert found.grid == ["live_reqs + 1"]
    assert found.values["hidden_stride"] == "row"
    assert found.values["max_num_tokens"] == "cap_tokens"
    assert found.values["shift"] == "0"


def test_a_case_has_a_value_for_every_parameter(parts) -> None:
    kernel, used, found = parts
    case = plan.build(kernel, used, found, ["slot_ptr"], "GL201")
    roles = {pointer.name: pointer.role for pointer in case.pointers}
    assert roles == {"offsets_ptr": "offset", "table_ptrs": "pointers", "table_ptrs[]": "table", "slot_ptr": "slot", "hidden_ptr": "value"}
    assert case.scalars["shift"] == "0"
    assert case.constexprs["FLAG"] == "False"
    assert plan.build(kernel, used, found, ["slot_ptr"], "GL201", flags=True).constexprs["FLAG"] == "True"
    pointers = {pointer.name for pointer in case.pointers if "[]" not in pointer.name}
    assert set(kernel.params) == pointers | case.scalars.keys() | case.constexprs.keys()


@pytest.mark.parametrize("buffer", ["slot_ptr", "self.slot_mapping", "slot_mapping"])
def test_the_buffer_of_a_finding_is_found_by_parameter_or_host_name(parts, buffer: str) -> None:
    _, used, found = parts
    assert plan.watched(buffer, used, found) == ["slot_ptr"]


def test_hints_win(parts) -> None:
    kernel, used, found = parts
    hints = plan.Hints(roles={"slot_ptr": "index"}, dtypes={"slot_ptr": "int32"}, extents={"num_reqs": "padded_reqs"})
    case = plan.build(kernel, used, found, ["slot_ptr"], "GL201", hints)
    slot = next(pointer for pointer in case.pointers if pointer.name == "slot_ptr")
    assert (slot.role, slot.dtype, case.scalars["num_reqs"]) == ("index", "int32", "padded_reqs")


@pytest.mark.parametrize(
    ("name", "extent"),
    [
        ("num_reqs", "live_reqs"), ("max_num_reqs", "cap_reqs"), ("num_reqs_padded", "padded_reqs"), ("num_actual_tokens", "live_tokens"),
        ("max_num_batched_tokens", "cap_tokens"), ("raw_bs", "live_reqs"), ("num_tokens_per_req", None), ("block_size", None),
        ("num_token_programs", None), ("BLOCK_TOK", None), ("req_idx", None),
    ],
)
def test_names_of_counts(name: str, extent: str | None) -> None:
    assert count_of(name) == extent


def test_bs_beside_raw_bs_is_the_padded_one() -> None:
    assert count_of("bs", frozenset({"bs", "raw_bs"})) == "padded_reqs"
    assert count_of("bs", frozenset({"bs"})) == "live_reqs"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("query_start_loc_ptr", "offset"), ("paged_kv_indptr", "offset"), ("idx_mapping_ptr", "index"), ("last_token_indices_ptr", "index"),
        ("block_table_ptr", "table"), ("slot_mapping_ptr", "slot"), ("seq_lens_ptr", "length"), ("num_rejected_ptr", "count"),
        ("is_valid_token_ptr", "flag"), ("out_is_padding_ptr", "padding-flag"), ("hidden_states_ptr", "value"),
        ("positions_ptr", "position"),
    ],
)
def test_names_of_buffers(name: str, role: str) -> None:
    assert pointer_role(name) == role


def test_schedules_vary_and_start_with_the_witness() -> None:
    witness = [Step(live=6, padded=6, lengths=[1] * 6), Step(live=2, padded=3, lengths=[1] * 3)]
    found = plan.schedules(witness, [0, 1])
    assert (found[0].before.live, found[0].now.live, found[0].now.padded) == (6, 2, 3)
    assert {schedule.seed for schedule in found} == {0, 1}
    assert any(schedule.now.live == 1 for schedule in found)
    assert any(len(set(schedule.now.lengths)) > 1 for schedule in found)
    assert all(schedule.now.live < schedule.now.padded for schedule in found)


def test_expressions_execute_nothing() -> None:
    assert evaluate("cdiv(live_tokens, 4) + 1", {"live_tokens": 9}) == 4
    for text in ("__import__('os')", "(1).__class__", "2 ** 1000", "unknown", "[1]", "1 << 4000"):
        with pytest.raises(ValueError, match=r"cannot evaluate|too large"):
            evaluate(text, {})


def test_a_grid_that_is_too_large_is_refused(parts) -> None:
    kernel, used, found = parts
    case = plan.build(kernel, used, found, ["slot_ptr"], "GL201")
    huge = plan.schedules(None, [0])[0]
    plan.check(case, huge)
    import msgspec

    with pytest.raises(Unsupported, match="programs"):
        plan.check(msgspec.structs.replace(case, grid=["cap_tokens * 1000"]), huge)
    with pytest.raises(Unsupported, match=r"needs the value of a launch grid"):
        plan.check(msgspec.structs.replace(case, grid=["unknown"]), huge)
