"""A metric's name implies its direction and limits; its values imply their resolution."""

import numpy as np
import pytest

from attnlab.studies.integrity.tables.metrics import (
    add_direction,
    are_multiples,
    choose_smallest,
    count_decimals,
    find_known_set,
    find_limits,
    find_resolution,
    higher_is_better,
    recognise_metric,
    standardise_metric,
)  # fmt: skip
from attnlab.studies.integrity.tables.table import Cell


def make_cells(metric: str, texts: list[str], num_examples: int | None = None) -> list[Cell]:
    return [Cell("a", "", metric, str(n), None, float(text), text, "", num_examples) for n, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("name", "metric", "is_score"),
    [
        ("eval_accuracy", "accuracy", True), ("Exact Match", "exactmatch", True), ("dev/loss", "loss", False),
        ("val_ppl", "ppl", False), ("quality", "", True),
    ],
)  # fmt: skip
def test_a_metric_is_recognised_by_its_name(name: str, metric: str, is_score: bool) -> None:
    assert recognise_metric(name) == metric
    assert higher_is_better(name) == is_score


@pytest.mark.parametrize(
    ("name", "is_higher"),
    [
        ("FLIP ↓", False), ("FLIP ↑", True), ("FLIP", True), ("loss ↑", True), ("accuracy ↓", False), ("↓ x", False),
        ("gap (lower is better)", False), ("gap, higher is better", True), ("gap [Lower better]", False),
        ("xent", False), ("val/xent", False), ("cross-entropy", False), ("val_cross_entropy", False), ("↑ or ↓", True),
    ],
)  # fmt: skip
def test_a_stated_direction_decides(name: str, is_higher: bool) -> None:
    assert higher_is_better(name) == is_higher


def test_a_metric_takes_the_direction_of_its_column() -> None:
    assert add_direction("accuracy", "MNLI ↑") == "accuracy"
    assert add_direction("value", "FLIP ↓") == "value ↓"
    assert add_direction("gap ↑", "A ↓") == "gap ↓"
    assert standardise_metric("gap ↓") == standardise_metric("gap (lower is better)") == "gap"


@pytest.mark.parametrize(("text", "num"), [("0.125", 3), ("70", 0), ("70.0%", 1), ("1.5e-3", 4), ("1.25e2", 0)])
def test_decimals_are_counted_with_the_exponent(text: str, num: int) -> None:
    assert count_decimals(text) == num


def test_the_resolution_is_the_rounding_or_one_example() -> None:
    losses = ["1.2539174821", "1.3172416397", "1.4028731153"]
    assert find_resolution("loss", make_cells("loss", losses)) == pytest.approx((1e-10, 1e-10))
    step, rounding = find_resolution("accuracy", make_cells("accuracy", ["0.5125", "0.6"], 80))
    assert (step, rounding) == (1 / 80, 1e-4)
    values = [f"{correct / 37:.6f}" for correct in (11, 17, 20, 25, 31)]
    assert find_resolution("accuracy", make_cells("accuracy", values))[0] == pytest.approx(1 / 37)


def test_a_known_evaluation_set_is_recognised_by_its_size() -> None:
    correct = np.array([600, 650, 701, 702, 733, 760])
    assert find_known_set(correct / 872, 1.0, 1e-9) == 872
    assert find_known_set(correct[:4] / 872, 1.0, 1e-9) is None  # too few
    assert find_known_set(np.round(correct / 872, 2), 1.0, 0.01) is None  # too coarse
    assert are_multiples(correct / 872, 872, 1.0, 1e-9).all()
    assert not are_multiples(correct / 872 + 3e-4, 872, 1.0, 1e-9).any()


@pytest.mark.parametrize(
    ("name", "scale", "values", "smallest"),
    [
        ("f1", 100.0, [70.0], 1.0),
        ("f1", 1.0, [0.7], 0.01),
        ("ppl", None, [20.0], 1.0),
        ("loss", None, [2.0, 4.0], 0.03),
    ],
)
def test_the_default_smallest_difference(name: str, scale: float | None, values: list[float], smallest: float) -> None:
    assert choose_smallest(name, scale, values) == pytest.approx(smallest)


def test_limits_are_those_of_the_metric() -> None:
    assert find_limits("accuracy", 1.0) == (0.0, 1.0)
    assert find_limits("exact_match", 100.0) == (0.0, 100.0)
    assert find_limits("matthews", 1.0) == (-1.0, 1.0)
    assert find_limits("loss", 1.0) is None
    assert find_limits("accuracy", None) is None
