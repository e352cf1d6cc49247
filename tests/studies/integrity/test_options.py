"""Options of `judge` are read from the command line and checked against the table."""

from typing import Any

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import Cell, JudgeOptions, ResultTable, judge
from attnlab.studies.integrity.checks.units import read_units
from attnlab.studies.integrity.options import read_names, read_numbers, read_texts

CELLS = [
    Cell(arm, "", metric, seed, None, value, str(value), "")
    for arm in ("base", "new") for seed in "12" for metric, value in (("accuracy", 0.5), ("f1", 0.6), ("ppl", 20.0))
]  # fmt: skip
TABLE = ResultTable("t.csv", (), tuple(CELLS), "base")
UNITS = read_units(TABLE)


def test_a_value_is_given_for_all_metrics_or_by_metric() -> None:
    assert read_numbers("--smallest", None) is None
    assert read_numbers("--smallest", "1.5") == 1.5
    assert read_numbers("--smallest", "f1=1, ppl = 2") == {"f1": 1.0, "ppl": 2.0}
    assert read_texts("--units", "percent") == "percent"
    assert read_names("f1, ppl,,") == ("f1", "ppl")


@pytest.mark.parametrize("text", ["f1=", "=1", "f1=1,2"])
def test_a_pair_without_a_name_or_a_value_is_an_error(text: str) -> None:
    with pytest.raises(RequestError, match="--smallest takes one value, or METRIC=VALUE separated by commas"):
        read_numbers("--smallest", text)
    with pytest.raises(RequestError, match=r"--smallest takes a number, .* not 'much'"):
        read_numbers("--smallest", "f1=much")


def test_one_number_holds_for_primary_metrics_of_one_unit() -> None:
    assert JudgeOptions(smallest=0.01, primary=["accuracy", "f1"]).find_smallest(TABLE, UNITS) == {
        "accuracy": 0.01, "f1": 0.01,
    }  # fmt: skip
    with pytest.raises(RequestError, match="cannot hold for both accuracy and ppl, which have different units"):
        JudgeOptions(smallest=0.01).find_smallest(TABLE, UNITS)
    assert JudgeOptions(smallest={"ppl": 2}).find_smallest(TABLE, UNITS) == {"ppl": 2.0}


@pytest.mark.parametrize("name", ["acc", "Acc", "ACCURACY", "accuracy ↑"])
def test_a_metric_has_any_of_its_usual_names(name: str) -> None:
    assert JudgeOptions(primary=[name]).find_primary(TABLE) == ["accuracy"]
    assert JudgeOptions(smallest={name: 0.2}).find_smallest(TABLE, UNITS) == {"accuracy": 0.2}


def test_metrics_of_training_data_are_primary_only_if_named_or_alone() -> None:
    cells = [Cell("base", "", name, "1", None, 0.5, "0.5", "") for name in ("accuracy", "train_accuracy")]
    both, alone = ResultTable("t", (), tuple(cells), "base"), ResultTable("t", (), (cells[1],), "base")
    assert JudgeOptions().find_primary(both) == ["accuracy"]
    assert JudgeOptions(primary=["train_accuracy"]).find_primary(both) == ["train_accuracy"]
    assert JudgeOptions().find_primary(alone) == ["train_accuracy"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"primary": ["acuracy"]}, "--primary names 'acuracy', .* did you mean 'accuracy'"),
        ({"units": {"f1": "per cent"}}, "--units has no 'per cent', did you mean 'percent'"),
        ({"smallest": {"f1": 0.0}}, "--smallest must be a number above 0, not 0"),
        ({"floor": {"f1": 60.0}}, "--floor 60 is beyond f1, which lies between 0 and 1"),
        ({"floor": {"ppl": 0.5}}, "--floor 0.5 is beyond ppl, which is at least 1"),
        ({"floor": {"f1": float("nan")}}, "--floor must be a number, not nan"),
    ],
)
def test_a_value_that_cannot_be_is_one_clear_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        judge(TABLE, JudgeOptions(**options))
