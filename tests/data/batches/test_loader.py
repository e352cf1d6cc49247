"""A position is a batch: the same in another process, with other threads and ranks, and from the middle."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab.data import BatchPlan, Loader, Masking, Position, TokenFile
from attnlab.data.batches.loader import Batch
from attnlab.errors import DataError

PLANS = {
    "mlm": BatchPlan(length=32, batch=8),
    "whole words": BatchPlan(length=32, batch=8, masking=Masking(whole_words=True)),
    "clm": BatchPlan(length=32, batch=8, objective="clm", seed=3),
    "padded": BatchPlan(length=48, batch=4, layout="padded", last_batch="short"),
    "buckets": BatchPlan(length=100, batch=4, layout="padded", window=3, objective="clm"),
}


def digest(batches: list[Batch]) -> str:
    content = hashlib.sha256()
    for batch in batches:
        for name in sorted(batch):
            content.update(repr((name, batch[name].tolist())).encode())
    return content.hexdigest()


def take(loader: Loader, count: int) -> list[Batch]:
    return list(islice(loader, count))


def digests(folder: str | Path) -> list[str]:
    file = TokenFile.open(folder)
    return [digest(take(Loader(file, plan), 20)) for plan in PLANS.values()]


def test_another_process_makes_the_same_batches(packed: TokenFile) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        "from tests.data.batches.test_loader import digests\n"
        f"print(*digests({str(packed.folder)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.split() == digests(packed.folder), done.stderr


@pytest.mark.parametrize("name", PLANS)
def test_threads_change_nothing(packed: TokenFile, name: str) -> None:
    expected = digest(take(Loader(packed, PLANS[name]), 30))
    for workers in (1, 2, 5):
        assert digest(take(Loader(packed, PLANS[name], workers=workers), 30)) == expected


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("workers", [0, 2])
def test_from_the_middle_is_the_same(packed: TokenFile, name: str, workers: int) -> None:
    whole = take(Loader(packed, PLANS[name]), 40)
    first = Loader(packed, PLANS[name], workers=workers)
    take(first, 25)
    resumed = Loader(packed, PLANS[name])
    resumed.load_state_dict(first.state_dict())
    assert digest(take(resumed, 15)) == digest(whole[25:])


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("num_ranks", [2, 4])
def test_ranks_share_one_batch_out(packed: TokenFile, name: str, num_ranks: int) -> None:
    whole = Loader(packed, PLANS[name])
    parts = [Loader(packed, PLANS[name], rank, num_ranks) for rank in range(num_ranks)]
    for epoch, step in ((0, 0), (0, whole.steps_per_epoch - 1), (3, 1)):
        together = [part.batch(epoch, step) for part in parts]
        for key, expected in whole.batch(epoch, step).items():
            assert torch.equal(torch.cat([batch[key] for batch in together]), expected)


@given(st.sampled_from(sorted(PLANS)), st.integers(0, 50))
def test_an_epoch_has_each_example_once(packed: TokenFile, name: str, epoch: int) -> None:
    loader = Loader(packed, PLANS[name])
    seen = np.concatenate([loader.arrangement.rows(epoch, step) for step in range(loader.steps_per_epoch)])
    assert len(set(seen.tolist())) == seen.size
    assert 0 <= len(loader.sequences) - seen.size < (1 if loader.plan.last_batch == "short" else loader.plan.batch)


def test_epochs_differ_in_order_and_masking(packed: TokenFile) -> None:
    loader = Loader(packed, PLANS["mlm"])
    assert (loader.arrangement.rows(0, 0) != loader.arrangement.rows(1, 0)).any()
    assert (Loader(packed, BatchPlan(32, 8, seed=1)).arrangement.rows(0, 0) != loader.arrangement.rows(0, 0)).any()


def test_batches_are_what_a_model_takes(packed: TokenFile) -> None:
    batch = Loader(packed, PLANS["clm"]).batch(0, 0)
    assert {name: (tuple(t.shape), t.dtype) for name, t in batch.items()} == dict.fromkeys(
        ("input_ids", "attention_mask", "labels"), ((8, 32), torch.int64)
    )
    assert torch.equal(batch["labels"], batch["input_ids"])
    padded = Loader(packed, BatchPlan(200, 4, "clm", "padded")).batch(0, 0)
    assert (padded["labels"][padded["attention_mask"] == 0] == -100).all()
    assert (padded["attention_mask"] == 0).any()


def test_buckets_hold_rows_of_like_length(packed: TokenFile) -> None:
    plain = Loader(packed, BatchPlan(200, 4, "clm", "padded"))
    sorted_ = Loader(packed, BatchPlan(200, 4, "clm", "padded", window=10))

    def padding(loader: Loader) -> float:
        masks = [loader.batch(0, step)["attention_mask"] for step in range(loader.steps_per_epoch)]
        return sum(int((mask == 0).sum()) for mask in masks) / sum(mask.numel() for mask in masks)

    assert padding(sorted_) < 0.5 * padding(plain)


def test_lengths_are_cut_from_one_file(packed: TokenFile) -> None:
    short, long = Loader(packed, BatchPlan(16, 4)), Loader(packed, BatchPlan(64, 4))
    assert short.sequences.file is long.sequences.file
    assert short.batch(0, 0)["input_ids"].shape == (4, 16)
    assert long.batch(0, 0)["input_ids"].shape == (4, 64)


def test_positions_run_through_epochs(packed: TokenFile) -> None:
    loader = Loader(packed, PLANS["padded"])
    take(loader, loader.steps_per_epoch + 2)
    assert loader.position == Position(1, 2)


@pytest.mark.parametrize(
    ("plan", "ranks", "message"),
    [
        ({"batch": 10**6}, (0, 1), r"gives \d+ rows of 128, fewer than one batch of 1000000"),
        ({"batch": 6}, (0, 4), "rank 0 of 4, batch 6: the rank must be 0 … 3, and the batch a multiple"),
        ({"batch": 8}, (2, 2), "rank 2 of 2, batch 8: the rank must be 0 … 1"),
    ],
)
def test_what_gives_no_batches_is_refused(
    packed: TokenFile, plan: dict[str, int], ranks: tuple[int, int], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Loader(packed, BatchPlan(**plan), *ranks)  # type: ignore[arg-type]


def test_a_plan_that_cannot_be_is_refused(packed: TokenFile) -> None:
    with pytest.raises(DataError, match="objective must be 'mlm' or 'clm', not 'nsp'"):
        BatchPlan(objective="nsp")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="at least 1 row"):
        BatchPlan(batch=0)
    with pytest.raises(DataError, match="window=3 sorts rows by length"):
        BatchPlan(window=3)
    loader = Loader(packed, PLANS["mlm"])
    with pytest.raises(DataError, match="an epoch has steps 0 to"):
        loader.batch(0, loader.steps_per_epoch)
    with pytest.raises(DataError, match="belongs to other tokens or another plan"):
        loader.load_state_dict(Loader(packed, PLANS["clm"]).state_dict())
