"""An average that is not the mean of its tasks is a fault if most others are; one over other columns is a note."""

from pathlib import Path

import numpy as np
import pytest

from attnlab.studies.integrity import IntegrityFinding, judge, read_table
from attnlab.studies.integrity.checks.averages import check_averages
from attnlab.studies.integrity.tables.table import AveragedScore, ResultTable, StatedAverage
from tests.studies.integrity.result_tables import write_text

MEANS = "model,MNLI,QQP,SST-2,Avg\nA,87.4 ± 0.2,91.5 ± 0.1,94.6 ± 0.3,91.2\nB,87.2 ± 0.3,91.4 ± 0.2,94.4 ± 0.2,91.0\n"
WRONG = "C,87.9 ± 0.1,91.9 ± 0.1,95.1 ± 0.3,92.6\n"


def _find(path: str) -> list[IntegrityFinding]:
    return [finding for finding in judge(read_table(path)).findings if finding.check == "average differs"]


def test_a_wrong_average_is_a_fault(tmp_path: Path) -> None:
    assert not _find(write_text(tmp_path, MEANS))
    (found,) = _find(write_text(tmp_path, MEANS + WRONG))
    assert found.is_fault
    assert found.sentence.startswith("C: 'Avg' is 92.6 (line 4, Avg), but the mean of MNLI, QQP, SST-2 is 91.63. ")
    assert found.places == ("line 4, Avg",)


def test_a_row_of_averages(tmp_path: Path) -> None:
    rows = "Task,A,B,C\nMNLI,84.3,87.5,87.9\nQNLI,91.3,92.5,92.9\nRTE,66.3,78.5,78.9\nAverage,80.6,86.2,{}\n"
    assert not _find(write_text(tmp_path, rows.format("86.6")))
    (found,) = _find(write_text(tmp_path, rows.format("88.6")))
    assert found.is_fault
    assert "but the mean of MNLI, QNLI, RTE is 86.57" in found.sentence


@pytest.mark.parametrize(
    "text",
    [
        # Over other columns in every row, and one row of two that agrees by chance.
        "model,MNLI,RTE,Avg\nA,84.1,66.1,79.0\nB,85.1,67.1,79.9\nC,85.3,67.7,81.9\n",
        "model,MNLI,RTE,Avg\nA,84.1,66.1,75.1\nB,85.1,67.1,79.9\n",
        # Twice as far off as rounding explains.
        "model,MNLI,RTE,Avg\nA,84.1,66.1,75.1\nB,85.1,67.1,76.1\nC,85.2,67.2,76.4\n",
    ],
)
def test_what_other_columns_or_weights_may_explain_is_a_note(text: str, tmp_path: Path) -> None:
    (found,) = _find(write_text(tmp_path, text))
    assert not found.is_fault


@pytest.mark.parametrize(
    "text",
    [
        "model,MNLI,RTE,Avg\nA,84.1,66.1,75.1\nB,85.1,-,85.1\nC,85.2,67.2,76.2\n",
        "model,wiki_ppl,MNLI,RTE,Avg\nA,20.1,84.1,66.1,75.1\nB,21.1,85.1,67.1,76.1\n",
        "| model | RTE | QQP | Avg | C4 |\n|--|--|--|--|--|\n| A | 84 | 66.1 | 75.1 | 9 |\n| B | 85 | 67 | 76 | 8 |\n",
        "model,s1,s2,mean\nA,84.1,66.1,75.1\nB,85.1,67.1,76.1\n",
    ],
)
def test_averages_of_some_columns(text: str, tmp_path: Path) -> None:
    assert not _find(write_text(tmp_path, text))


def _draw_table(rng: np.random.Generator, weights: str) -> ResultTable:
    num_rows, num_tasks, digits = int(rng.integers(2, 10)), int(rng.integers(2, 10)), int(rng.integers(1, 3))
    scores = rng.uniform(60, 90, num_tasks) + rng.normal(0, 1, (num_rows, num_tasks))
    share = np.full(num_tasks, 1 / num_tasks) if weights == "equal" else rng.dirichlet(np.ones(num_tasks))
    averages = []
    for number, row in enumerate(scores):
        texts, text = [f"{score:.{digits}f}" for score in row], f"{row @ share:.{digits}f}"
        over = tuple(AveragedScore(f"t{n}", word, float(word), True) for n, word in enumerate(texts))
        averages.append(StatedAverage("Avg", f"arm {number}", text, float(text), f"line {number}", over))
    return ResultTable("t", (), (), "", averages=tuple(averages))


def test_rounding_never_raises_an_alarm_and_weights_rarely_do() -> None:
    rng = np.random.default_rng(0)
    assert not any(list(check_averages(_draw_table(rng, "equal"))) for _ in range(500))
    found = [any(it.is_fault for it in check_averages(_draw_table(rng, "other"))) for _ in range(1000)]
    assert np.mean(found) < 0.01
