"""None of the speed changes the mathematics: loss curves are those of a plain loop over full logits."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import attnlab
from attnlab.training import Data, Job, Optimizer, Schedule, Segment, build, train
from tests.training.runs import losses_of, quiet, small

STEPS, WARMUP, LR, CLIP = 20, 5, 4e-3, 0.4
WIDTH = 48
"""Every batch of the plain loop is padded to it."""
EXACT = 1e-11
"""fp64, over 20 steps; SQuAD and classification compute their losses in fp32 and have its rounding."""
SPAN = ("start", "end")
TASKS = {"mlm": EXACT, "clm": EXACT, "mqar": EXACT, "squad": 3e-6, "sst2": 3e-6}


def described(task: str, texts: Path, **changes: Any) -> Any:
    """Describe the run that both loops make."""
    segment = Segment(steps=STEPS, batch=8, **changes)
    data = Data(train=str(texts), tokenizer="word:40") if task == "sst2" else None
    return small(
        task, segments=(segment,), data=data, optimizer=Optimizer(lr=LR, weight_decay=0.1),
        schedule=Schedule(warmup=WARMUP), clip=CLIP,
    )  # fmt: skip


def doubled(run: Any) -> Job:
    """Build a run in fp64."""
    job = build(run)
    job.model.double()
    return job


def widened(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Pad a batch as example scripts do: to one length for all."""
    fill = {"labels": -100, "input_ids": 0, "attention_mask": 0, "token_type_ids": 0}
    return {
        name: F.pad(tensor, (0, WIDTH - tensor.shape[1]), value=fill[name]) if tensor.dim() == 2 else tensor
        for name, tensor in batch.items()
    }


def plain_loss(task: str, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    """Compute a loss from all logits, as its paper says."""
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids") if name in batch}
    output = model(**{name: tensor for name, tensor in inputs.items() if task != "clm" or name != "token_type_ids"})
    if task == "squad":
        places = {at: output[f"{at}_logits"].masked_fill(batch["attention_mask"] == 0, -torch.inf) for at in SPAN}
        first, last = (F.cross_entropy(places[at], batch[f"{at}_positions"]) for at in SPAN)
        return (first + last) / 2
    logits, labels = output.logits, batch["labels"]
    if task == "clm":
        logits, labels = logits[:, :-1], labels[:, 1:]
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


def plain_losses(task: str, job: Job) -> list[float]:
    """Train with a loop that has none of attnlab's speed in it."""
    model = attnlab.uninstall(job.model).train()
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR)
    stream, losses = job.streams[0], []
    for step in range(STEPS):
        epoch, place = divmod(step, stream.arrangement.steps_per_epoch)
        batch = widened(stream.make(stream.arrangement.rows(epoch, place), epoch))
        loss = plain_loss(task, model, batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for group in optimizer.param_groups:
            group["lr"] = LR * ((step + 1) / WARMUP if step < WARMUP else (STEPS - step) / (STEPS - WARMUP))
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("task", TASKS)
def test_loss_curves_are_those_of_a_plain_loop(task: str, texts: Path, tmp_path: Path) -> None:
    run = described(task, texts)
    plain = plain_losses(task, doubled(run))
    train(doubled(run), tmp_path, quiet())
    assert losses_of(tmp_path) == pytest.approx(plain, rel=TASKS[task], abs=0)
    assert plain[-1] < plain[0]


@pytest.mark.parametrize("task", TASKS)
def test_accumulated_passes_give_the_same_updates(task: str, texts: Path, tmp_path: Path) -> None:
    train(doubled(described(task, texts)), tmp_path / "whole", quiet())
    # Three rows a pass, of different lengths and numbers of labels, and the last pass has two.
    job = doubled(described(task, texts, micro_batch=3))
    if task in ("mlm", "clm"):
        assert len({job.task.count(job.streams[0].make(np.arange(at, at + 3), 0)) for at in range(9)}) > 1
    train(job, tmp_path / "parts", quiet())
    assert losses_of(tmp_path / "parts") == pytest.approx(losses_of(tmp_path / "whole"), rel=TASKS[task], abs=0)


def test_sorting_by_length_only_changes_which_rows_are_together(texts: Path) -> None:
    sorted_rows, plain = (build(described("clm", texts, window=window)).streams[0] for window in (3, 0))
    for first in (0, 3):
        steps = range(first, min(first + 3, plain.arrangement.steps_per_epoch))
        mine, theirs = ([stream.arrangement.rows(0, step) for step in steps] for stream in (sorted_rows, plain))
        assert sorted(row for rows in mine for row in rows) == sorted(row for rows in theirs for row in rows)
        assert [list(rows) for rows in mine] != [list(rows) for rows in theirs]
    padding = [
        sum(int((stream.make(stream.arrangement.rows(0, step), 0)["attention_mask"] == 0).sum()) for step in range(3))
        for stream in (sorted_rows, plain)
    ]
    assert padding[0] < padding[1]


def test_a_penalty_is_in_the_loss(tmp_path: Path) -> None:
    for name, mechanism in (("plain", "dot | softmax"), ("penalty", "dot | softmax | penalize(output, 5)")):
        train(build(small(mechanism=mechanism)), tmp_path / name, quiet())
    first = [losses_of(tmp_path / name)[0] for name in ("plain", "penalty")]
    assert first[1] > first[0]
