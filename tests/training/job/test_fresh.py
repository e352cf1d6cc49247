"""Fresh rows: new ones for every update, the same for the same seed and step, without a set that grows or ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.errors import TaskError, TrainingError
from attnlab.training import Data, RunSpec, Segment, build, train
from attnlab.training.job.stream import RankShare, updates
from tests.training.runs import Stopping, assert_same_run, small, trained

SOURCE = "embedded:mqar?vocab=32&length=24&pairs=4&examples=20"


def fresh(**changes: Any) -> RunSpec:
    """Describe a run that trains on fresh rows."""
    run = small("mqar", data=changes.pop("data", Data(train=SOURCE, dev=SOURCE)), **changes)
    return run.replace(task_settings={**run.task_settings, "is_fresh": True})


def test_no_row_comes_twice_and_none_is_held_out() -> None:
    job = build(fresh())
    rows = [
        row.tobytes()
        for one in updates(job.streams[0], RankShare(), 0, 200)
        for row in one.batches[0]["input_ids"].numpy()
    ]
    assert len(set(rows)) == len(rows) == 800
    assert job.dev is not None
    assert len(job.dev.examples) == 20
    assert not set(rows) & {np.array(one.input_ids, dtype=np.int64).tobytes() for one in job.dev.examples}


def test_rows_are_a_function_of_seed_and_step() -> None:
    one, again, other = (build(fresh(seed=seed)).streams[0] for seed in (1, 1, 2))
    late = 10**9
    first = next(iter(updates(one, RankShare(), late, late + 1)))
    assert (next(iter(updates(again, RankShare(), late, late + 1))).rows == first.rows).all()
    assert not set(next(iter(updates(other, RankShare(), late, late + 1))).rows) & set(first.rows)
    assert one.identity == again.identity != other.identity


def test_a_run_that_is_stopped_goes_on_as_if_it_was_not(tmp_path: Path) -> None:
    trained(fresh(), tmp_path / "whole")
    assert train(build(fresh()), tmp_path / "cut", Stopping({3})).status == "interrupted"
    trained(fresh(), tmp_path / "cut")
    assert_same_run(tmp_path / "cut", tmp_path / "whole")


def test_the_floor_is_known_without_a_training_set(tmp_path: Path) -> None:
    _, result = trained(fresh(), tmp_path)
    assert result.last.floor > 0.2
    assert result.last.ceiling == 1.0
    assert f"(floor {result.last.floor:.4g}: {result.last.floor_strategy}; ceiling 1)" in result.last.sentence
    answers = json.loads((tmp_path / "predictions" / "step-00000006.json").read_text(encoding="utf-8"))
    assert answers["reference"]["floor"] == result.last.floor


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"segments": (Segment(epochs=1),)},
            "counts epochs, and fresh rows never come to the end of one; give it steps",
        ),
        (
            {"data": Data(train=SOURCE, dev=SOURCE, num_train=5)},
            "with task_settings.is_fresh there are none; leave them out",
        ),
        ({"num_scored": 5}, "with task_settings.is_fresh there are none; leave them out"),
    ],
    ids=["epochs", "num_train", "num_scored"],
)
def test_what_needs_a_set_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        build(fresh(**changes))


def test_a_file_of_rows_has_no_fresh_ones(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"input_ids": [1, 2], "labels": [-100, 1]}\n', encoding="utf-8")
    with pytest.raises(TaskError, match="fresh rows must be generated"):
        build(fresh(data=Data(train=str(path), dev=str(path))))
