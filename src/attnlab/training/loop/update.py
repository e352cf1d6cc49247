"""One update of the weights: passes, gradients weighed by what they are means over, clipping, the optimizer's step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attnlab.data.draws import keys_of, name_key
from attnlab.install import set_progress

from ..job.job import Job
from ..job.stream import Update
from .optimizer import make_optimizer, set_rates, trained_parameters
from .precision import Precision
from .ranks import Ranks
from .schedule import factor_at

DROPOUT = name_key("dropout")


class Objective(nn.Module):
    """A task's loss of a model as one module, which processes can share."""

    def __init__(self, model: nn.Module, task: Any) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean loss of a batch, a mechanism's penalty included."""
        loss: Tensor = self.task.loss(self.model, batch)
        return loss


@dataclass(frozen=True)
class Outcome:
    """What one update measured."""

    loss: float
    gradient_norm: float
    lr: float
    tokens: int

    @property
    def is_finite(self) -> bool:
        """Whether the weights may take it."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)


class Updater:
    """Makes updates; the same step with the same batches and weights gives the same bits."""

    def __init__(self, job: Job, precision: Precision, ranks: Ranks) -> None:
        self.job, self.precision, self.ranks = job, precision, ranks
        self.optimizer = make_optimizer(job.model, job.settings.optimizer)
        self.trained = list(trained_parameters(job.model).values())
        own = Objective(job.model, job.task)
        self.objective = ranks.share(own, lambda: self.has_unused(own))

    def has_unused(self, objective: nn.Module) -> bool:
        """Tell whether anything trains that the loss does not reach, by trying on a few rows."""
        self.move_to(0)
        stream = self.job.streams[0]
        objective(stream.make(stream.arrangement.rows(0, 0)[:8], 0)).backward()
        is_left_out = any(parameter.grad is None for parameter in self.trained)
        self.optimizer.zero_grad(set_to_none=True)
        return is_left_out

    def rate(self, step: int, segment: int) -> float:
        """Return the learning rate of a step."""
        settings = self.job.settings
        highest = settings.segments[segment].lr
        highest = settings.optimizer.lr if highest is None else highest
        return highest * factor_at(settings.schedule, step, self.job.num_steps)

    def compute(self, update: Update, step: int, segment: int) -> Outcome:
        """Compute the gradients of an update, and clip them; the weights stay as they are."""
        counts = [self.job.task.count(batch) for batch in update.batches]
        tokens = sum(num_tokens(batch) for batch in update.batches)
        count, num = self.ranks.total(sum(counts), tokens)
        summed = 0.0
        for number, (batch, own) in enumerate(zip(update.batches, counts, strict=True)):
            if not own and self.ranks.num == 1:
                continue  # a few short rows may have no hidden token among them, and then no part in the loss
            torch.manual_seed(dropout_seed(self.job.seed, step, self.ranks.rank, number))
            is_last = number == len(counts) - 1
            with nullcontext() if is_last else self.ranks.apart(self.objective):
                with self.precision.autocast(self.ranks.device):
                    loss = self.objective(batch)
                # Processes take the mean of their gradients, so each is weighed by their number.
                (loss * (own * self.ranks.num / count)).backward()
            summed += loss.item() * own
        (summed,) = self.ranks.total(summed)
        clip = self.job.settings.clip
        norm = torch.nn.utils.clip_grad_norm_(self.trained, math.inf if clip is None else clip)
        return Outcome(summed / max(1, count), float(norm), self.rate(step, segment), int(num))

    def take(self, outcome: Outcome) -> None:
        """Let the weights take the gradients that were computed."""
        set_rates(self.optimizer, outcome.lr)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def move_to(self, step: int) -> None:
        """Tell scheduled stages of a mechanism how far training is."""
        set_progress(self.job.model, step / self.job.num_steps)


def dropout_seed(seed: int, step: int, rank: int, number: int) -> int:
    """Return what dropout is drawn from in one pass: nothing before it matters, so a resumed run draws the same."""
    return int(np.asarray(keys_of(DROPOUT, seed, step, rank, number)).astype(np.int64)) & (2**63 - 1)


def num_tokens(batch: Mapping[str, Tensor]) -> int:
    """Return how many tokens a batch has, padding left out."""
    return int(batch["attention_mask"].sum()) if "attention_mask" in batch else batch["input_ids"].numel()
