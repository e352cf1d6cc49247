"""GLUE's tasks have their official figures, labels and columns."""

from attnlab.tasks import load
from attnlab.tasks.classification.glue import GLUE, SPELLINGS

PRIMARY = {"cola": "matthews", "mrpc": "f1", "qqp": "f1", "stsb": "pearson"}


def test_every_task_has_its_official_figure() -> None:
    assert {task.name: task.primary for task in GLUE} == {
        task.name: PRIMARY.get(task.name, "accuracy") for task in GLUE
    }
    assert len(GLUE) == 10


def test_the_number_of_labels_is_that_of_the_task() -> None:
    labels = {task.name: task.head_settings["num_labels"] for task in GLUE}
    assert labels == {**dict.fromkeys(labels, 2), "stsb": 1, "mnli": 3, "mnli_mismatched": 3}


def test_other_spellings_name_the_same_task() -> None:
    assert all(load(spelling).name == name for spelling, name in SPELLINGS.items())
