"""Segments of a pointer merged."""

from __future__ import annotations

from kernel_texts import models

from graphlint.facts.expr import show
from graphlint.kernel_models import Interval, coverage
from graphlint.kernel_models.coverage import join


def _shown(intervals: tuple[Interval, ...] | list[Interval]) -> list[str]:
    return [f"[{show(part.lo)}, {show(part.hi)})" + (" conditional" if part.conditional else "") for part in intervals]


def test_live_lanes_and_fill_meet() -> None:
    for name in ("last_program_fills", "extra_program_fills"):
        found = coverage(models("lanes")[name], "out_ptr")
        assert _shown(found.live) == ["[0, num_reqs)"]
        assert [show(fill.value) for fill in found.fills] == ["0"]
        assert _shown(found.union) == ["[0, max_num_reqs)"]
        assert found.exact


def test_narrow_store_leaves_the_tail() -> None:
    assert _shown(coverage(models("values")["other_but_narrow_store"], "out_ptr").union) == ["[0, raw_bs)"]
    assert _shown(coverage(models("values")["other_pads"], "out_ptr").union) == ["[0, max_num_tokens)"]


def test_opposite_conditions_cover_together() -> None:
    assert _shown(coverage(models("branches")["both_arms"], "out_ptr").union) == ["[0, num_programs(0))"]


def test_rows_join_inside() -> None:
    found = coverage(models("branches")["returns_after_both"], "indices_ptr")
    assert _shown(found.union) == ["[0, num_programs(0))"]
    assert _shown(found.inner) == ["[0, width)"]
    one_arm = coverage(models("branches")["returns_after_lens"], "indices_ptr")
    assert _shown(one_arm.union) == ["[0, num_programs(0)) conditional"]


def test_scatter_has_no_interval() -> None:
    found = coverage(models("lanes")["scatter"], "out_ptr")
    assert found.indirect
    assert found.union == ()


def test_pointer_without_stores() -> None:
    assert coverage(models("lanes")["scatter"], "x_ptr").union == ()


def test_intervals_of_unknown_order_stay_apart() -> None:
    n, m = ("param", "k", "n"), ("param", "k", "m")
    parts = [Interval(("const", 0), n), Interval(m, ("bin", "+", m, ("const", 4)))]
    assert join(parts) == parts
    assert _shown(join([parts[1], Interval(("const", 0), ("let", "total", m))])) == ["[0, (m + 4))"]
