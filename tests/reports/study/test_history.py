"""Curves of a report: long ones are thinned from first to last, names with numbers are in a person's order."""

from __future__ import annotations

import pytest

from attnlab.reports.study.history import MAX_POINTS, MAX_STEPS, make_averager, split_natural, thin_steps


@pytest.mark.parametrize(("num_steps", "num_curves"), [(3, 1), (5000, 1), (5000, 25), (5000, 100), (5000, 2000)])
def test_a_chart_has_first_and_last_and_few_between(num_steps: int, num_curves: int) -> None:
    kept = thin_steps(range(10, 10 * num_steps + 1, 10), num_curves)
    assert {10, 10 * num_steps} <= kept
    assert len(kept) <= MAX_STEPS
    assert num_curves > 300 or len(kept) * num_curves <= max(MAX_POINTS, num_steps)


def test_a_trace_is_the_mean_over_layers_and_heads() -> None:
    take = make_averager(["a", "b", "absent"])
    assert take({"a": [1.0, 2.0, "NaN"], "b": 6.0}) == pytest.approx(3.0)
    assert take({"c": 1.0}) is None


def test_layers_are_in_order() -> None:
    assert sorted(["h.10.attn", "h.9.attn", ""], key=split_natural) == ["", "h.9.attn", "h.10.attn"]
