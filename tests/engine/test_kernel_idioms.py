"""Kernels that pad what they write: by a padded grid, an extra or last program, blocks over the capacity, pointers in a table."""

import pytest
from engine_fixtures import engine_files

ROW = "tl.store(dst + req * stride + lanes, tl.load(src + row * stride + lanes, mask=lanes < stride), mask=lanes < stride)"
FIRST = "tl.store(first_ptr + req, tl.load(idx_ptr + req))"
SECOND = "tl.store(second_ptr + req, tl.load(idx_ptr + req) + 1)"
STATE = "tl.store(slots_ptr + req, tl.load(idx_ptr + req))"

POSITIONS = "tl.store(positions_ptr + lanes, lanes - start, mask=lanes < end)"
NO_POSITION = "tl.store(positions_ptr + lanes, 0, mask=lanes < num_tokens_padded)"
NO_FIRST = "tl.store(first_ptr + lanes, -1, mask=lanes < max_num_reqs)"
NO_SECOND = "tl.store(second_ptr + lanes, 0, mask=lanes < max_num_reqs)"
NO_ROW = "tl.store(dst + req * stride + lanes, 0, mask=lanes < stride)"
#: a direct write of the tables somewhere, as engines have one for sleep or for tests
CLEARED = {
    "    def attend(self, desc):":
        "    def clear(self):\n        for table in self.input_block_tables:\n            table.zero_()\n\n    def attend(self, desc):",
}


def test_every_idiom_of_padding_kernels_is_understood(check):
    assert check("block_tables").reported == []


@pytest.mark.parametrize(("edits", "expected"), [
    pytest.param({NO_ROW: "pass", **CLEARED}, [("GL201", "input_block_tables", ROW)], id="table-of-pointers"),
    pytest.param({"tl.store(slots_ptr + req, -1)": "pass"}, [("GL201", "state_slots", STATE)], id="one-of-two-stores-on-the-padded-path"),
    pytest.param(
        {"tl.store(slots_ptr + req, -1)": "pass", "tl.store(lens_ptr + req, 0)": "pass"},
        [("GL201", "state_slots", STATE), ("GL201", "state_lens", "tl.store(lens_ptr + req, 1)")], id="padded-path-without-stores",
    ),
    pytest.param(
        {"state_kernel[(desc.num_reqs,)]": "state_kernel[(num_reqs,)]"},
        [("GL201", "state_slots", STATE), ("GL201", "state_lens", "tl.store(lens_ptr + req, 1)")], id="padded-path-that-no-program-takes",
    ),
    pytest.param({NO_FIRST: "pass"}, [("GL201", "source_indices", FIRST)], id="last-program-1"),
    pytest.param({NO_SECOND: "pass"}, [("GL201", "target_indices", SECOND)], id="last-program-2"),
    pytest.param(
        {"range(count, max_num_reqs, BLOCK)": "range(count, count, BLOCK)"},
        [("GL201", "source_indices", FIRST), ("GL201", "target_indices", SECOND)], id="last-program-with-an-empty-loop",
    ),
    pytest.param(
        {"tl.where(lanes < num_reqs, live, -1), mask=lanes < max_num_reqs)": "live, mask=lanes < num_reqs)"},
        [("GL201", "lora_ids", "tl.store(ids_ptr + lanes, live, mask=lanes < num_reqs)")], id="blocks-masked-by-the-live-count",
    ),
    pytest.param(
        {NO_POSITION: "pass"}, [("GL201", "token_positions", POSITIONS)], id="kernel-nested-in-a-class",
    ),
])
def test_a_kernel_that_stops_padding_is_noticed(check, edits, expected):
    assert sorted(check("block_tables", edits).reported) == sorted(expected)


def test_a_buffer_written_through_pointers_only_is_followed_to_its_reader(check):
    assert check("block_tables", {NO_ROW: "pass"}).reported == [("GL201", "input_block_tables", ROW)]


def test_a_kernel_nested_in_a_class_is_found_through_self(check):
    reported = check("block_tables", {
        "PositionHelper.positions_kernel[(": "self.positions_kernel[(", NO_POSITION: "pass",
    }).reported
    assert [(finding.rule, finding.buffer) for finding in reported] == [("GL201", "token_positions")]


@pytest.mark.xfail(strict=True, reason="a test of the program id against an argument is not compared with the grid")
def test_a_pad_program_that_the_grid_does_not_reach_pads_nothing(check):
    """The kernel pads in program `num_reqs`; a grid of `num_reqs` programs ends before it."""
    reported = check("block_tables", {"positions_kernel[(num_reqs + 1,)]": "positions_kernel[(num_reqs,)]"}).reported
    assert reported == [("GL201", "token_positions", POSITIONS)]


def test_a_method_of_the_engine_that_is_named_like_one_of_a_tensor_is_followed(check):
    renamed = {"    def compute(self": "    def fill(self", "self.helper.compute(": "self.helper.fill("}
    reported = check("block_tables", {**renamed, NO_POSITION: "pass"}).reported
    assert [(finding.rule, finding.buffer) for finding in reported] == [("GL201", "token_positions")]


def line_of(text: str) -> int:
    """Line of the only place in the engine that has `text`."""
    (source,) = [source for source in engine_files("block_tables").values() if text in source]
    return source[: source.index(text)].count("\n") + 1


def test_a_grid_given_as_a_lambda_counts_lanes(facts):
    """`spread_kernel[lambda meta: (num_reqs,)]` writes the live lanes and fills from there to the capacity."""
    (function,) = facts("block_tables", f"block_tables/tables.py:{line_of('spread_kernel[lambda')}")["functions"]
    assert function["symbol"] == "BlockTables.prepare"
    (buffer,) = [b for b in function["buffers"] if b["name"] == "source_indices"]
    assert buffer["capacity"] == "capacity requests"
    stores = [(event["kind"], event["extent"]) for event in buffer["events"] if event["by"] == "kernel spread_kernel"]
    assert stores == [("write", "live requests"), ("fill", "capacity requests")]
