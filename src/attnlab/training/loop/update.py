"""One update of the weights: passes weighted by their numbers of loss terms, clipping, and the optimizer's step."""

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.data.draws import keys_of, name_key
from attnlab.install import set_progress

from ..job.job import Job
from ..job.stream import Update
from .optimizer import get_trained_parameters, make_optimizer
from .precision import Precision
from .ranks import Ranks
from .schedule import compute_lr_factor

DROPOUT = name_key("dropout")


class Objective(nn.Module):
    """A model and its task's loss as one module, which DistributedDataParallel can wrap."""

    def __init__(self, model: nn.Module, task: Any) -> None:
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return the mean loss of a batch, including a mechanism's penalty."""
        loss: Tensor = self.task.loss(self.model, batch)
        return loss


@dataclass(frozen=True)
class Outcome:
    """Loss, gradient norm, learning rate and tokens of one update."""

    loss: float
    gradient_norm: float
    lr: float
    tokens: int

    @property
    def is_finite(self) -> bool:
        """Whether the update may be applied."""
        return math.isfinite(self.loss) and math.isfinite(self.gradient_norm)


class Updater:
    """Makes updates; the same step with the same batches and weights gives the same bits."""

    def __init__(self, job: Job, precision: Precision, ranks: Ranks) -> None:
        self.job, self.precision, self.ranks = job, precision, ranks
        self.optimizer = make_optimizer(job.model, job.settings.optimizer)
        self.trained = list(get_trained_parameters(job.model).values())
        objective = Objective(job.model, job.task)
        self.objective = ranks.wrap(objective, lambda: self._has_unused(objective))

    def _has_unused(self, objective: nn.Module) -> bool:
        """Tell whether the loss of a few rows leaves a trainable parameter without a gradient."""
        self.move_to(0)
        stream = self.job.streams[0]
        objective(stream.make(stream.arrangement.rows(0, 0)[:8], 0)).backward()
        has_unused = any(parameter.grad is None for parameter in self.trained)
        self.optimizer.zero_grad()
        return has_unused

    def compute_lr(self, step: int, segment: int) -> float:
        """Return the learning rate of a step."""
        settings = self.job.settings
        peak = settings.segments[segment].lr
        peak = settings.optimizer.lr if peak is None else peak
        return peak * compute_lr_factor(settings.schedule, step, self.job.num_steps)

    def compute(self, update: Update, step: int, segment: int) -> Outcome:
        """Compute and clip the gradients of an update; the weights do not change."""
        counts = [self.job.task.count(batch) for batch in update.batches]
        tokens = sum(count_tokens(batch) for batch in update.batches)
        total, num_tokens = self.ranks.sum(sum(counts), tokens)
        summed = 0.0
        for number, (batch, count) in enumerate(zip(update.batches, counts, strict=True)):
            if not count and self.ranks.num == 1:
                continue  # a few short rows may have no hidden token, and then no loss
            torch.manual_seed(compute_dropout_seed(self.job.seed, step, self.ranks.rank, number))
            is_last = number == len(counts) - 1
            with nullcontext() if is_last else self.ranks.no_sync(self.objective):
                with self.precision.autocast(self.ranks.device):
                    loss = self.objective(batch)
                # Processes average their gradients, so the sum is weighted by their number.
                (loss * (count * self.ranks.num / total)).backward()
            summed += loss.item() * count
        (summed,) = self.ranks.sum(summed)
        clip = self.job.settings.clip
        norm = torch.nn.utils.clip_grad_norm_(self.trained, math.inf if clip is None else clip)
        return Outcome(summed / max(1, total), float(norm), self.compute_lr(step, segment), int(num_tokens))

    def apply(self, outcome: Outcome) -> None:
        """Update the weights with the gradients that were computed."""
        self.optimizer.step(outcome.lr)

    def move_to(self, step: int) -> None:
        """Set the progress of training, which scheduled stages of a mechanism depend on."""
        set_progress(self.job.model, step / self.job.num_steps)


def compute_dropout_seed(seed: int, step: int, rank: int, number: int) -> int:
    """Return the seed of dropout in one pass; it depends on no earlier draw, so a resumed run draws the same."""
    return int(keys_of(DROPOUT, seed, step, rank, number)) & (2**63 - 1)


def count_tokens(batch: Mapping[str, Tensor]) -> int:
    """Return the number of tokens in a batch, without padding."""
    return int(batch["attention_mask"].sum()) if "attention_mask" in batch else batch["input_ids"].numel()
