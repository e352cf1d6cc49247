"""A task with the scores of another in every arm is found, however many rows the header has."""

from pathlib import Path

import numpy as np
import pytest

from attnlab.studies.integrity import IntegrityFinding, IntegrityKind
from tests.studies.integrity.result_tables import judge_file, write_rows

ARMS = {"softmax": "84.13", "cosine": "85.07", "relu": "83.29", "gated": "84.88"}
OTHERS = {"softmax": ("83.01", "88.10"), "cosine": ("84.22", "88.52"), "relu": ("82.15", "87.03"),
          "gated": ("83.90", "88.31")}  # fmt: skip
TWO_ROWS = "method,MNLI,,QQP,\n,acc,F1,acc,F1\n" + "".join(
    f"{arm},{score},{OTHERS[arm][0]},{score},{OTHERS[arm][1]}\n" for arm, score in ARMS.items()
)
ONE_ROW = "method,MNLI,QQP,SST-2\n" + "".join(
    f"{arm},{score},{score},{OTHERS[arm][1]}\n" for arm, score in ARMS.items()
)
LATEX = (
    r"\begin{tabular}{lcccc} & \multicolumn{2}{c}{MNLI} & \multicolumn{2}{c}{QQP} \\ "
    r"Method & acc & F1 & acc & F1 \\ \midrule "
    + "".join(rf"{arm} & {score} & {OTHERS[arm][0]} & {score} & {OTHERS[arm][1]} \\ " for arm, score in ARMS.items())
    + r"\end{tabular}"
)


def find_repeats(path: Path, text: str) -> list[IntegrityFinding]:
    path.write_text(text, encoding="utf-8")
    return [it for it in judge_file(str(path)).findings if it.kind == IntegrityKind.REPEATED_VALUES]


@pytest.mark.parametrize(
    ("file", "text", "metric"),
    [("t.csv", ONE_ROW.replace("QQP", "RTE"), "accuracy"), ("accuracy.csv", ONE_ROW, "accuracy"),
     ("t.csv", TWO_ROWS, "acc"), ("t.tex", LATEX, "acc")],
)  # fmt: skip
def test_a_copied_task_is_a_fault(tmp_path: Path, file: str, text: str, metric: str) -> None:
    (finding,) = find_repeats(tmp_path / file, text)
    assert finding.is_fault
    task = "RTE" if "RTE" in text else "QQP"
    assert finding.sentence.startswith(f"{task} has the {metric} of MNLI in all 4 arms (softmax 84.13, ")


def test_a_copied_task_with_another_metric(tmp_path: Path) -> None:
    (finding,) = find_repeats(tmp_path / "t.csv", ONE_ROW)
    assert finding.sentence.startswith("accuracy or F1 of QQP has the values of accuracy of MNLI in all 4 arms")
    same_task = "method,MNLI acc,MNLI F1\n" + "".join(f"{arm},{score},{score}\n" for arm, score in ARMS.items())
    assert not find_repeats(tmp_path / "t.csv", same_task)


def test_a_copied_task_of_seeds_under_two_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = ["method,seed,MNLI,,QQP,", ",,acc,F1,acc,F1"]
    for arm in ("base", "ours"):
        for seed in range(5):
            acc, first, second = (f"{value:.2f}" for value in rng.normal((84, 83, 88), 0.5))
            rows.append(f"{arm},{seed},{acc},{first},{acc},{second}")
    (finding,) = find_repeats(tmp_path / "t.csv", "\n".join(rows))
    assert finding.is_fault
    assert "QQP has the acc of" in finding.sentence


@pytest.mark.parametrize(
    "text",
    [
        ONE_ROW.replace("gated,84.88,84.88", "gated,84.88,84.87"),
        "method,MNLI,QQP\nbase,84.1,84.1\nours,85.0,85.0\n",
        "method,MNLI acc,MNLI F1\nbase,84.13,84.13\nours,85.07,85.07\nrelu,83.29,83.29\n",
    ],
    ids=["one arm differs", "two arms", "accuracy and micro F1 are equal by definition"],
)
def test_what_is_no_copied_task(tmp_path: Path, text: str) -> None:
    assert not find_repeats(tmp_path / "t.csv", text)


def test_coarse_scores_are_a_note(tmp_path: Path) -> None:
    (finding,) = find_repeats(tmp_path / "t.csv", "method,RTE,WNLI\nbase,71,71\nours,72,72\nrelu,70,70\n")
    assert not finding.is_fault
    assert finding.sentence.endswith("it may be a copy or a coincidence")


def test_columns_without_tasks_are_named_as_they_stand(tmp_path: Path) -> None:
    rows = [f"{arm},{seed},{value},{value}" for arm, start in (("base", 23.1), ("ours", 22.0)) for seed, value in
            enumerate((start, round(start + 0.3, 1), round(start + 0.5, 1)))]  # fmt: skip
    found = judge_file(write_rows(tmp_path, "arm,seed,error (%),top1 err", rows))
    (finding,) = (it for it in found.faults if it.kind == IntegrityKind.REPEATED_VALUES)
    assert finding.sentence.startswith("'top1 err' has the values of 'error (%)' in all 2 arms")
