"""Ways out of a kernel and loaded indices."""

from __future__ import annotations

import pytest
from kernel_texts import models

from graphlint.facts.expr import show
from graphlint.kernel_models import subtractions


def _exits(name: str) -> list[tuple[bool, tuple[str, ...]]]:
    return [(path.early, path.stored) for path in models("branches")[name].exits]


def test_early_return_leaves_an_output_out() -> None:
    assert _exits("returns_after_lens") == [(True, ("lens_ptr",)), (False, ("lens_ptr", "indices_ptr"))]


def test_early_return_that_stores_everything() -> None:
    assert _exits("returns_after_both") == [(True, ("lens_ptr", "indices_ptr")), (False, ("lens_ptr", "indices_ptr"))]


def test_exit_conditions() -> None:
    early, end = models("lanes")["padded_grid"].exits
    assert [show(cond) for cond in early.when] == ["req >= num_reqs"]
    assert [show(cond) for cond in end.when] == ["req < num_reqs"]


@pytest.mark.parametrize(
    ("name", "pointer", "source", "decrement", "guarded"),
    [
        ("decrement", "tokens_ptr", "count_ptr", 1, False),
        ("decrement_tested", "tokens_ptr", "count_ptr", 1, True),
        ("decrement_clamped", "tokens_ptr", "count_ptr", 1, True),
        ("sentinel", "x_ptr", "idx_mapping_ptr", 0, False),
        ("sentinel_returns", "x_ptr", "idx_mapping_ptr", 0, True),
        ("sentinel_masked", "x_ptr", "idx_mapping_ptr", 0, True),
        ("upper_bound_is_no_guard", "x_ptr", "idx_mapping_ptr", 0, False),
    ],
)
def test_derefs(name: str, pointer: str, source: str, decrement: int, guarded: bool) -> None:
    found = models("derefs")[name].derefs
    assert [(deref.pointer, deref.source, deref.decrement, deref.guarded) for deref in found] == [(pointer, source, decrement, guarded)]


def test_test_of_another_value_is_no_guard() -> None:
    """`lens[slot] > 0` reads through the slot before it tests anything."""
    found = models("derefs")["test_of_another_value"].derefs
    assert [(deref.pointer, deref.source, deref.guarded) for deref in found] == [
        ("lens_ptr", "idx_mapping_ptr", False), ("x_ptr", "idx_mapping_ptr", False),
    ]


@pytest.mark.parametrize(
    ("fixture", "name", "found"),
    [
        ("values", "length_without_clamp", [("seq_lens_ptr", "max_decode_len")]),
        ("values", "length_with_clamp", []),
        ("values", "where_on_data", []),
        ("values", "constant_for_every_live_lane", []),
        ("values", "length_of_a_run", []),
    ],
)
def test_subtraction_without_clamp(fixture: str, name: str, found: list[tuple[str, str]]) -> None:
    (stored,) = [segment for segment in models(fixture)[name].segments if segment.kind == "store"]
    assert stored.value is not None
    assert [(pointer, show(less)) for pointer, less in subtractions(stored.value)] == found
