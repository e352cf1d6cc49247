"""What `num_scored` wrote stands beside the figures on dev examples, where there is such a line and nowhere else."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from attnlab.reports.study.contents import Contents, collect_contents
from attnlab.reports.study.page import render_page
from attnlab.reports.study.tables import write_per_seed
from attnlab.studies.answers.study_folder import open_record

from .made import BASE, HIGH, Made, history

HEADING = "On training examples"


def line(kind: str, step: int, **figures: Any) -> dict[str, Any]:
    return {"kind": kind, "step": step, "task": "mqar", "primary": "accuracy", **figures}


def run(loss: float, trained: Any, dev: Any) -> list[dict[str, Any]]:
    return [
        line("evaluation", 2, loss=9.0, accuracy=0.1),
        line("evaluation", 4, loss=loss + 1, accuracy=dev),
        line("training set", 4, loss=loss, accuracy=trained, collapse={"share": 1.0}),
    ]


def read(folder: Path) -> tuple[Contents, list[dict[str, str]]]:
    with open_record(folder) as record:
        return collect_contents(record), list(csv.DictReader(io.StringIO(write_per_seed(record))))


def test_means_over_seeds_stand_beside_those_of_dev_examples(tmp_path: Path) -> None:
    made = Made(tmp_path, seeds=[1, 2])
    made.give("dot", BASE[:2], metrics=run(1.0, 0.75, 0.5)).give("better", HIGH[:2], metrics=run(0.5, 1.0, 0.25))
    found, rows = read(made.done())
    (table,) = found.training
    assert (table.title, table.figures) == ("recall, tiny", ["accuracy", "loss"])  # the primary metric first
    assert [(arm, [cell.text for cell in cells]) for arm, cells in table.rows] == [
        ("dot", ["0.75", "0.5", "1", "2"]), ("better", ["1", "0.25", "0.5", "1.5"])
    ]  # fmt: skip
    assert {(row["arm"], row["train_accuracy"], row["train_loss"]) for row in rows} == {
        ("dot", "0.75", "1.0"), ("better", "1.0", "0.5")
    }  # fmt: skip
    assert "train_collapse" not in rows[0]
    page = render_page(found)
    assert page.count(f"<h3>{HEADING}: recall, tiny</h3>") == 1
    assert page.index('id="results"') < page.index(HEADING) < page.index('id="audits"')


def test_both_means_are_over_the_same_seeds(tmp_path: Path) -> None:
    made = Made(tmp_path, seeds=[1, 2])
    first, second = [one for one in made.planned if one.arm == "dot"]
    made.give("dot", BASE[:1], metrics=run(1.0, 0.75, 0.5))
    made.planned = [second]
    made.give("dot", BASE[1:2], metrics=run(1.0, 0.0, 0.9)[:2])
    found, rows = read(made.done())
    assert [cell.text for cell in found.training[0].rows[0][1]][:2] == ["0.75", "0.5"]
    trained = {row["run"]: row["train_accuracy"] for row in rows}
    assert (trained[first.id], trained[second.id]) == ("0.75", "")


def test_what_is_no_number_is_a_dash(tmp_path: Path) -> None:
    made = Made(tmp_path, seeds=[1])
    made.give("dot", BASE[:1], metrics=run(1.0, "NaN", 0.5))
    made.give("better", HIGH[:1], metrics=run(1.0, 0.5, 0.5)[2:])
    found, rows = read(made.done())
    assert [cells[0].text for _, cells in found.training[0].rows] == ["–", "0.5"]
    assert [cells[1].text for _, cells in found.training[0].rows] == ["0.5", "–"]
    assert rows[0]["train_accuracy"] == ""


def test_without_such_lines_there_is_no_table(tmp_path: Path) -> None:
    found, rows = read(Made(tmp_path).give("dot", BASE, metrics=history()).done())
    assert not found.training
    assert HEADING not in render_page(found)
    assert not [name for name in rows[0] if name.startswith("train_")]
