"""Batches are functions of their position, whoever asks, and are cut as accumulation and processes need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attnlab.errors import TrainingError
from attnlab.tasks import load
from attnlab.training import Data, FeatureStream, Segment, TokenStream, build
from attnlab.training.job.stream import RankShare, updates
from tests.training.runs import DATA, small


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
    whole = list(updates(own, RankShare(), 0, 20))
    assert len(whole) == 20
    assert whole[-1].position.epoch > 0
    for mine, theirs in zip(updates(stream(task=task), RankShare(), 13, 20), whole[13:], strict=True):
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
        next(updates(own, RankShare(), 0, 3))


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
