"""Segments of small kernels, one idea each (fixtures/triton)."""

from __future__ import annotations

import pytest
from kernel_texts import loads, models, stores

LANES = {
    "one_lane_per_program": ["out_ptr lane [0, num_programs(0)) = load(x_ptr + program_id(0))"],
    "token_blocks": ["out_ptr lane [0, num_tokens)"],
    "token_blocks_without_mask": ["out_ptr lane [0, (num_programs(0) * BLOCK))"],
    "padded_grid": ["out_ptr fill [num_reqs, num_programs(0)) = -1", "out_ptr lane [0, num_reqs)"],
    "padded_grid_without_store": ["out_ptr lane [0, num_reqs)"],
    "last_program_fills": ["out_ptr lane [0, num_reqs)", "out_ptr fill [num_reqs, max_num_reqs) = 0"],
    "extra_program_fills": ["out_ptr fill [num_reqs, max_num_reqs) = 0", "out_ptr lane [0, num_reqs)"],
    "fill_with_closed_bound": ["indptr_ptr fill [num_programs(0), (max_num_reqs + 1)) = 7"],
    "runs_of_tokens": ["out_ptr lane [load(query_start_loc_ptr + 0), load(query_start_loc_ptr + num_programs(0)))"],
    "runs_with_one_more_each": [
        "out_ptr lane [load(query_start_loc_ptr + 0), (load(query_start_loc_ptr + num_programs(0)) + num_programs(0)))",
    ],
    "runs_with_padding_slots": [
        "out_ptr lane [load(query_start_loc_ptr + 0), (load(query_start_loc_ptr + num_programs(0)) + (num_programs(0) * num_slots)))",
    ],
    "rows_with_a_column_stride": ["out_ptr lane [0, num_programs(0)) x [0, width)"],
    "rows": ["out_ptr lane [0, num_programs(1)) x [0, width)"],
    "scatter": ["out_ptr indirect [slot, (slot + 1))"],
    "accumulate": ["out_ptr lane [0, num_programs(0))"],
}


@pytest.mark.parametrize("name", LANES)
def test_lanes(name: str) -> None:
    got = stores(models("lanes")[name])
    assert len(got) == len(LANES[name]), got
    for line, expected in zip(got, LANES[name], strict=False):
        assert line.startswith(expected), got
        assert not line.endswith("inexact"), got


@pytest.mark.parametrize("name", ["block_loop_without_mask", "shortened_runs", "backwards", "block_pointer", "bumped_pointer"])
def test_not_exact(name: str) -> None:
    """A rounded last block, runs that do not meet, a negative multiplier and block pointers are not exact."""
    got = stores(models("lanes")[name])
    assert len(got) == 1
    assert got[0].endswith("inexact")


def test_unknown_ends_stay_unknown() -> None:
    assert stores(models("lanes")["backwards"])[0].startswith("out_ptr lane [?, ?)")
    assert stores(models("lanes")["shortened_runs"])[0].startswith("out_ptr lane [load(query_start_loc_ptr + 0), ?)")


def test_address_that_is_not_understood_may_be_any_pointer_in_it() -> None:
    assert [line.split(" = ")[0] for line in stores(models("lanes")["either_pointer"])] == ["a_ptr lane [?, ?)", "b_ptr lane [?, ?)"]


def test_loads_are_segments_too() -> None:
    assert loads(models("lanes")["runs_of_tokens"])[:2] == [
        "query_start_loc_ptr lane [0, num_programs(0))", "query_start_loc_ptr lane [1, (num_programs(0) + 1))",
    ]
    assert loads(models("lanes")["padded_grid"]) == ["x_ptr lane [0, num_reqs)"]


VALUES = {
    "where_pads": ["out_ptr lane [0, num_reqs) = (x + 1)", "out_ptr fill [num_reqs, max_num_reqs) = -1"],
    "other_pads": ["out_ptr lane [0, num_tokens) = x", "out_ptr fill [num_tokens, max_num_tokens) = 0"],
    "other_but_narrow_store": ["out_ptr lane [0, raw_bs) = x"],
    "where_on_data": ["out_ptr lane [0, num_programs(0)) = (x if x >= 0 else -1)"],
    "constant_for_every_live_lane": ["out_ptr lane [0, num_programs(0)) = 1"],
    "length_without_clamp": ["out_ptr lane [0, num_programs(0)) = length"],
    "length_with_clamp": ["out_ptr lane [0, num_programs(0)) = max(length, 0)"],
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    got = stores(models("values")[name])
    assert len(got) == len(VALUES[name]), got
    for line, expected in zip(got, VALUES[name], strict=False):
        assert line.startswith(expected), got


def test_program_id_that_numbers_two_dimensions() -> None:
    assert loads(models("values")["length_with_clamp"]) == ["seq_lens_ptr lane [0, cdiv(num_programs(0), max_decode_len))"]


def test_constexpr_arms_keep_their_condition() -> None:
    assert stores(models("branches")["both_arms"]) == [
        "out_ptr lane [0, num_programs(0)) = load(x_ptr + program_id(0)) when FLAG",
        "out_ptr lane [0, num_programs(0)) = pid when not FLAG",
    ]


def test_helper_and_pointer_table() -> None:
    model = models("branches")["pointer_table"]
    assert stores(model) == ["tables_ptr fill [num_reqs, num_programs(1)) x [0, stride) = 0"]
    assert model.helpers == ("_load_ptr", "_clear")
    assert model.unknown == ()


def test_unknown_helper_may_store() -> None:
    model = models("branches")["unknown_helper"]
    assert "indptr_ptr passed to find_row" in model.unknown
    assert stores(model)[0].startswith("out_ptr lane [0, num_programs(0))")
    assert stores(models("branches")["hands_out_pointer"]) == ["out_ptr lane [0, num_programs(0)) = 1 inexact"]


def test_kernels_under_wrappers_and_in_classes() -> None:
    found = models("branches")
    assert found["tuned"].decorators == ("autotune", "heuristics")
    assert found["tuned"].constexprs == ("BLOCK",)
    assert stores(found["Wrapped.kernel"]) == ["out_ptr lane [0, n) = pid"]
    assert "not_a_kernel" not in found
