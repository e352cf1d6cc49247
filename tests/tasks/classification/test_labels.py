"""Labels are read as they are written in files; what is no label is refused with its place."""

from typing import Any

import pytest

from attnlab.errors import TaskError
from attnlab.tasks import Labels, Range

NLI = Labels(("entailment", "neutral", "contradiction"))
TRUTH = Labels(("false", "true"))


@pytest.mark.parametrize(
    ("labels", "value", "number"),
    [
        (NLI, "neutral", 1),
        (NLI, 2, 2),
        (NLI, "2", 2),
        (NLI, 1.0, 1),
        (TRUTH, True, 1),
        (TRUTH, "True", 1),
        (TRUTH, "yes", 1),
        (TRUTH, "no", 0),
        (TRUTH, 0, 0),
        (Labels(("0", "1")), " 1 ", 1),
        (Labels(("0", "1")), True, 1),
    ],
)
def test_a_value_is_read_by_name_or_number(labels: Labels, value: Any, number: int) -> None:
    assert labels.read(value, "here") == number


@pytest.mark.parametrize(
    ("labels", "value", "message"),
    [
        (NLI, "entailmnet", r"f.tsv, row 3: the label is 'entailmnet', did you mean 'entailment'\?"),
        (NLI, 3, r"the label is 3\. It must be one of entailment \(0\), neutral \(1\), contradiction \(2\)"),
        (NLI, float("nan"), "f.tsv, row 3: the label is NaN"),
        (NLI, "-1", "the label is '-1'"),
        (NLI, 0.5, "the label is 0.5"),
        (TRUTH, "maybe", "is this the file of another task"),
        (Range(0, 5), "entailment", "f.tsv, row 3: the label is 'entailment', not a number"),
        (Range(0, 5), "nan", "f.tsv, row 3: the label is nan; it must be finite"),
        (Range(0, 5), 7, "the label 7 is not from 0 to 5"),
        (Range(0, 5), None, "not a number"),
    ],
)
def test_what_is_no_label_is_refused(labels: Labels | Range, value: Any, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        labels.read(value, "f.tsv, row 3")


def test_a_predicted_number_may_lie_outside_the_range() -> None:
    assert Range(0, 5).read(5.3, "here", "prediction") == 5.3


def test_labels_are_found_in_a_column() -> None:
    assert Labels.collect(["10", "9", "9"]).names == ("9", "10")
    assert Labels.collect(["pos", "neg", "pos"]).names == ("neg", "pos")
    assert Labels.collect([True, False]).names == ("false", "true")
