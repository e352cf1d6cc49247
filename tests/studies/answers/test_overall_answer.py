"""One answer over the tasks of a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from attnlab.studies.answers.study_folder import open_record

from ..joint import Gain, two_tasks, write_joint


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (lambda run: 0.2, "BETTER OVERALL"),
        (lambda run: -0.2, "WORSE OVERALL"),
        (lambda run: 0.3 if run.phase == "recall" else -0.2, "MIXED (1 better, 1 worse)"),
    ],
)
def test_the_words_of_one_answer(tmp_path: Path, gain: Gain, words: str) -> None:
    write_joint(tmp_path, two_tasks(), gain)
    with open_record(tmp_path) as record:
        (answer,) = record.joint_answers
    assert answer.verdict == words
    assert [point.name for point in answer.points] == ["recall", "again"]
    assert answer.value == pytest.approx(sum(point.difference for point in answer.points) / 2)
    assert [point.name for point in answer.without] == ["recall", "again"]
    assert answer.without[0].difference == pytest.approx(answer.points[1].difference)
    assert any(note.startswith("leaving one task out, the mean is between") for note in answer.notes)


def test_the_task_that_decides_is_named(tmp_path: Path) -> None:
    write_joint(tmp_path, two_tasks(), lambda run: 0.2 if run.phase == "recall" else 0.0)
    with open_record(tmp_path) as record:
        (answer,) = record.joint_answers
    assert any(note.startswith("recall decides: without it the answer is ") for note in answer.notes)


def test_a_task_that_was_not_learned_makes_no_answer(tmp_path: Path) -> None:
    write_joint(tmp_path, two_tasks(), lambda run: 0.0, floor=0.9)
    with open_record(tmp_path) as record:
        (answer,) = record.joint_answers
    assert answer.verdict == "NOT COMPARABLE (in recall, neither arm learned the task)"
