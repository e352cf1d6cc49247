"""Batches are functions of their position, split for accumulation and processes; fresh rows never repeat."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnlab.errors import TaskError, TrainingError
from attnlab.tasks import load
from attnlab.training import Data, FeatureStream, RunSpec, Segment, TokenStream, build, train
from attnlab.training.job.stream import RankShare, make_updates
from tests.training.runs import DATA, Stopping, assert_same_run, small, trained


def stream(**changes: Any) -> Any:
    """Return the stream of a small run."""
    return build(small(**changes)).streams[0]


def assert_same(one: Any, other: Any) -> None:
    assert one.position == other.position
    assert list(one.rows) == list(other.rows)
    for mine, theirs in zip(one.batches, other.batches, strict=True):
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)


@pytest.mark.parametrize("task", ["clm", "mlm"])
def test_updates_from_the_middle_are_those_of_the_whole(task: str) -> None:
    own = stream(task=task)
    whole = list(make_updates(own, RankShare(), 0, 20))
    assert len(whole) == 20
    assert whole[-1].position.epoch > 0
    for mine, theirs in zip(make_updates(stream(task=task), RankShare(), 13, 20), whole[13:], strict=True):
        assert_same(mine, theirs)


def test_masks_are_other_ones_each_epoch() -> None:
    own = stream(task="mlm")
    rows = own.arrangement.rows(0, 0)
    one, again, other = (own.make(rows, epoch) for epoch in (0, 0, 1))
    assert torch.equal(one["labels"], again["labels"])
    assert not torch.equal(one["labels"], other["labels"])


@pytest.mark.parametrize(("num_ranks", "micro"), [(1, None), (1, 3), (2, None), (2, 2), (3, 1), (8, 5)])
def test_shares_are_the_rows_of_an_update_each_once(num_ranks: int, micro: int | None) -> None:
    rows = np.arange(100, 107)
    parts = [part for rank in range(num_ranks) for part in RankShare(rank, num_ranks, micro).parts(rows)]
    assert [row for part in parts for row in part] == list(rows)
    assert max(part.size for part in parts) <= (micro or 7)


def test_what_a_batch_is_made_of_is_in_the_identity() -> None:
    own = stream()
    same = stream()
    others = [
        stream(seed=4),
        stream(segments=(Segment(steps=6, batch=5),)),
        stream(segments=(Segment(steps=6, batch=4, window=2),)),
        stream(segments=(Segment(steps=6, batch=4, length=20),)),
        stream(data=DATA["clm"].replace(num_train=29)),
        stream(task="mlm"),
    ]
    assert own.identity == same.identity
    assert len({own.identity, *(other.identity for other in others)}) == 7


def test_the_size_of_a_pass_is_not_in_the_identity() -> None:
    assert stream().identity == stream(segments=(Segment(steps=6, batch=4, micro_batch=1),)).identity


def test_an_error_while_a_batch_is_made_reaches_the_run() -> None:
    own = stream()

    def broken(*_: Any) -> Any:
        raise ValueError("no such row")

    own.make = broken
    with pytest.raises(ValueError, match="no such row"):
        next(make_updates(own, RankShare(), 0, 3))


def test_rows_are_named_for_a_record_of_trouble() -> None:
    own = stream()
    assert own.names(np.array([3, 0])) == [own.features[3].key, own.features[0].key]
    packed = build(small(data=Data(train=DATA["clm"].train, tokenizer="word:150", is_packed=True, num_dev=2))).streams[
        0
    ]
    assert isinstance(packed, TokenStream)
    assert packed.names(np.array([3, 0])) == ["3", "0"]
    assert packed.longest == packed.mean_length == 32


def test_nothing_to_train_on_is_an_error() -> None:
    with pytest.raises(TrainingError, match="there is nothing to train on"):
        FeatureStream(load("clm"), [], Segment(steps=1), 0)
    with pytest.raises(TrainingError, match="a token file trains 'mlm' or 'clm', not 'squad'"):
        TokenStream(load("squad"), None, Segment(steps=1), 0)  # type: ignore[arg-type]


SOURCE = "embedded:mqar?vocab=32&length=24&pairs=4&examples=20"


def fresh(**changes: Any) -> RunSpec:
    """Describe a run that trains on fresh rows."""
    run = small("mqar", data=changes.pop("data", Data(train=SOURCE, dev=SOURCE)), **changes)
    return run.replace(task_settings={**run.task_settings, "is_fresh": True})


def test_no_row_comes_twice_and_none_is_held_out() -> None:
    job = build(fresh())
    rows = [
        row.tobytes()
        for one in make_updates(job.streams[0], RankShare(), 0, 200)
        for row in one.batches[0]["input_ids"].numpy()
    ]
    assert len(set(rows)) == len(rows) == 800
    assert job.dev is not None
    assert len(job.dev.examples) == 20
    assert not set(rows) & {np.array(one.input_ids, dtype=np.int64).tobytes() for one in job.dev.examples}


def test_rows_are_a_function_of_seed_and_step() -> None:
    one, again, other = (build(fresh(seed=seed)).streams[0] for seed in (1, 1, 2))
    late = 10**9
    first = next(iter(make_updates(one, RankShare(), late, late + 1)))
    assert (next(iter(make_updates(again, RankShare(), late, late + 1))).rows == first.rows).all()
    assert not set(next(iter(make_updates(other, RankShare(), late, late + 1))).rows) & set(first.rows)
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
        ({"segments": (Segment(epochs=1),)}, "counts epochs, and fresh rows have no epochs; give it steps"),
        (
            {"data": Data(train=SOURCE, dev=SOURCE, num_train=5)},
            "with task_settings.is_fresh every row is new; leave them out",
        ),
        ({"num_scored": 5}, "with task_settings.is_fresh every row is new; leave them out"),
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
