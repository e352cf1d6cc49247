"""Fractions and percentages in one table are found, and not compared until the user gives the unit."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from attnlab.studies.integrity import Judgement
from tests.studies.integrity.result_tables import (
    STEPS,
    WRITERS,
    Recipe,
    Record,
    Write,
    judge_file,
    make_records,
    write_long,
)

CHECK = "mixed units"


def divide(records: list[Record], **whose: Any) -> None:
    """Write some values as fractions."""
    for record in records:
        if all(record[name] == value for name, value in whose.items()):
            record["value"] /= 100


def sentences(found: Judgement) -> list[str]:
    return [finding.sentence for finding in found.findings if finding.check == CHECK]


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("steps", [(), STEPS])
@pytest.mark.parametrize("metric", ["accuracy", "f1", "em"])
@pytest.mark.parametrize("whose", [{"arm": "cosine"}, {"arm": "cosine", "seed": 3}, {"arm": "baseline", "seed": 0}])
def test_fractions_among_percentages_are_a_fault_and_not_compared(
    tmp_path: Path, write: Write, steps: tuple[int, ...], metric: str, whose: dict[str, Any]
) -> None:
    records = make_records(Recipe(metrics=(metric,), steps=steps, num_seeds=6))
    divide(records, **whose)
    path = write(tmp_path / "t.csv", records)
    found = judge_file(path)
    assert CHECK in [finding.check for finding in found.faults]
    (row,) = found.analyses[-1].rows
    assert row.verdict.startswith("NOT COMPARABLE (mixed units: ")
    assert row.comparison is None
    assert "difference" not in row.record()
    # The two ways out: they are fractions, or they are what they look like.
    converted, as_written = judge_file(path, units="convert"), judge_file(path, units={metric: "percent"})
    assert CHECK not in [finding.check for finding in (*converted.faults, *as_written.faults)]
    assert "multiplied by 100" in sentences(converted)[0]
    (row,) = converted.analyses[-1].rows
    assert row.comparison is not None
    assert 40 < row.comparison.data.baseline.mean < 95
    assert abs(row.comparison.difference) < 15


def test_the_planted_case(tmp_path: Path) -> None:
    """0.81 against 82.1 was +81.68 BETTER, without a fault."""
    lines = [f"{arm},{seed},{value}" for arm, value in (("new", 0.81), ("base", 82.1)) for seed in range(5)]
    lines = [f"{line}{digit}" for line, digit in zip(lines, itertools.cycle("13579"), strict=False)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["arm,seed,accuracy", *lines]), encoding="utf-8")
    found = judge_file(str(path))
    assert [finding.check for finding in found.faults] == [CHECK]
    assert found.analyses[0].rows[0].verdict == (
        "NOT COMPARABLE (mixed units: 5 of 10 values look like fractions, the others like percentages)"
    )


def test_a_percent_sign_makes_the_unit_certain(tmp_path: Path) -> None:
    rows = [f"base,{seed},{80 + seed / 7:.2f}%" for seed in range(5)] + [
        f"new,{s},{0.81 + s / 900:.4f}" for s in range(5)
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["arm,seed,accuracy", *rows]), encoding="utf-8")
    found = judge_file(str(path))
    assert found.is_clean
    assert "5 values of 'new' multiplied by 100, since all other values carry a percent sign" in sentences(found)[0]
    comparison = found.analyses[0].rows[0].comparison
    assert comparison is not None
    assert 0 < comparison.difference < 2


@pytest.mark.parametrize("write", WRITERS)
def test_groups_of_different_units_are_a_fault_and_compared_apart(tmp_path: Path, write: Write) -> None:
    records = make_records(Recipe(metrics=("accuracy",), groups=("s", "l"), num_seeds=6))
    divide(records, size="s")
    path = write(tmp_path / "t.csv", records)
    found = judge_file(path)
    assert sentences(found)[0].startswith("accuracy is a fraction in 's' and a percentage in 'l'")
    assert not found.is_clean
    smallest = {row.group: row.comparison.question.smallest for row in found.analyses[0].rows if row.comparison}
    assert smallest == {"s": 0.01, "l": 1.0}
    assert judge_file(path, units="convert").is_clean


def test_metrics_of_different_units_are_noted_and_compared_apart(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("em", "f1"), num_seeds=6))
    divide(records, metric="f1")
    found = judge_file(write_long(tmp_path / "t.csv", records))
    # In particular, an F1 of 0.71 is not below an exact match of 60.
    assert found.is_clean
    assert sentences(found) == ["written as fractions: f1; in percent: em; each metric is compared in its own unit"]
    smallest = {row.metric: row.comparison.question.smallest for row in found.analyses[0].rows if row.comparison}
    assert smallest == {"em": 1.0, "f1": 0.01}


def test_a_unit_that_changes_between_steps(tmp_path: Path) -> None:
    records = make_records(Recipe(metrics=("f1",), steps=STEPS, num_seeds=6))
    for step in (500, 1000):
        divide(records, step=step)
    found = judge_file(write_long(tmp_path / "t.csv", records))
    assert CHECK in [finding.check for finding in found.faults]
    # The last step has one unit, and is compared; what the last fifth gained is unknown.
    comparison = found.analyses[0].rows[0].comparison
    assert comparison is not None
    assert comparison.question.late_gain is None


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        ("accuracy", [0.4, 0.9, 1.3, 2.2, 5.5]),  # percentages of runs that learned little
        ("accuracy", [0.0, 60.1, 61.2, 62.3, 63.4]),  # 0 is the same in both units
        ("accuracy", [0.61, 0.62, 0.63, 1.0, 0.0]),
        ("loss", [0.81, 0.92, 82.1, 83.3, 0.9]),  # a loss has no unit to mix
        ("perplexity", [1.0, 1.5, 82.1, 83.3, 1.2]),
        ("score", [0.5, 3.0, 40.0, 0.1, 90.0]),
    ],
)
def test_what_is_no_mixture(tmp_path: Path, metric: str, values: list[float]) -> None:
    rows = [f"{arm},{seed},{value}" for arm in ("a", "b") for seed, value in enumerate(values)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join([f"arm,seed,{metric}", *rows]), encoding="utf-8")
    assert sentences(judge_file(str(path))) == []


def test_a_curve_may_begin_below_one_percent(tmp_path: Path) -> None:
    curve = {100: 0.3, 200: 4.0, 300: 31.0, 400: 60.0}
    rows = [
        f"{arm},{seed},{step},{value * (1 + seed / 90) + (arm == 'b') / 7:.4f}"
        for arm in ("a", "b") for seed in range(6) for step, value in curve.items()
    ]  # fmt: skip
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["arm,seed,step,em", *rows]), encoding="utf-8")
    assert sentences(judge_file(str(path))) == []


def test_an_impossible_fraction_does_not_turn_others_into_percentages(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{0.8 + seed / 300 + (arm == 'b') / 700:.4f}" for arm in ("a", "b") for seed in range(7)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["arm,seed,accuracy", *rows[:-1], "b,6,1.042"]), encoding="utf-8")
    found = judge_file(str(path))
    assert [finding.check for finding in found.faults] == ["impossible values"]
    comparison = found.analyses[0].rows[0].comparison
    assert comparison is not None
    assert comparison.question.smallest == 0.01


def test_arms_as_columns_of_an_unnamed_metric(tmp_path: Path) -> None:
    rows = [f"{seed},{82 + seed / 7:.2f},{0.82 + seed / 900:.4f}" for seed in range(6)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["seed,vanilla,cosine", *rows]), encoding="utf-8")
    assert judge_file(str(path)).analyses[0].rows[0].verdict.startswith("NOT COMPARABLE (mixed units")


@pytest.mark.parametrize(
    ("metric", "unit", "words"),
    [
        ("loss", "convert", "--units convert not used for loss, which is neither a fraction nor a percentage"),
        ("accuracy", "convert", "--units convert not used for accuracy, whose values have one unit"),
        ("score", "percent", "--units percent not used for score, whose values have one unit"),
    ],
)
def test_units_without_an_effect_are_named(metric: str, unit: str, words: str, tmp_path: Path) -> None:
    path = write_long(tmp_path / "t.csv", make_records(Recipe(metrics=(metric,))))
    assert words in judge_file(path, units=unit).units
    assert not any("--units" in text for text in judge_file(path).units)
