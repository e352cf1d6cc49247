"""The training loop: one run from its first update, or from its last checkpoint, to its end.

A step: compute gradients → stop if they are not finite → update → record → observe (evaluate, trace, sample) →
checkpoint. All random draws are functions of the seed and the step, so a repeated step gives the same bits.
"""

import math
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import torch

from attnlab.data import Position
from attnlab.tasks.objective import NotFiniteError

from ..job.job import Job
from ..job.stream import RankShare, Update, make_updates
from ..record.files import Seal, write_json
from ..record.folder import METRICS, MICRO, RESULT, read_result
from ..record.lock import lock_folder
from ..record.metrics import Metrics
from ..record.state import State
from ..result import ENDS, Divergence, Result, Status
from ..tracking.trackers import PROJECT, RunTitle, Trackers
from ..tuning.parts import count_parameters
from .activations import fuse_activations
from .checkpointer import Checkpointer
from .compiling import compile_layers
from .identity import check_config, write_config
from .machine import choose_threads, explain_memory_errors
from .precision import choose_precision
from .progress import Display
from .ranks import Ranks, join_ranks
from .stopping import StopRequest, stop_request
from .trace import compute_weight_norms
from .update import Outcome, Updater
from .watch import NoMetrics, Watch

NUM_NORMS = 5


def train(job: Job, folder: str | Path, display: Display | None = None) -> Result:
    """Train to the end, or resume after an interruption; a run that has ended is not repeated."""
    path = Path(folder)
    with join_ranks() as ranks, fuse_activations(job.model):
        if not ranks.is_first:
            return Training(job, path, ranks, Display(is_quiet=True)).run()
        with lock_folder(path), display or Display() as shown:
            check_config(job, path)
            return Training(job, path, ranks, shown).run()


class DivergedError(Exception):
    """A loss or a gradient is not finite, or the loss exceeds its bound; its argument is the `Divergence`."""


class Training:
    """One run in progress."""

    def __init__(self, job: Job, folder: Path, ranks: Ranks, display: Display) -> None:
        self.job, self.folder, self.ranks, self.display = job, folder, ranks, display
        self.ended: Result | None = ranks.broadcast(read_result(folder) if ranks.is_first else None)
        if self.ended is not None:
            return
        job.model.to(ranks.device)  # type: ignore[arg-type]
        job.model.train()
        self.checkpointer = Checkpointer(job, folder, display.say)
        checkpoint = ranks.broadcast(self.checkpointer.checkpoints.load_last() if ranks.is_first else None)
        precision = checkpoint.state["precision"] if checkpoint else job.settings.precision
        threads = job.threads
        if threads is None and checkpoint and checkpoint.state["num_ranks"] == ranks.num:
            threads = checkpoint.state["threads"]
        self.threads = ranks.broadcast(choose_threads(threads, ranks.num, job.operations / ranks.num))
        torch.set_num_threads(self.threads)
        self.precision = ranks.broadcast(choose_precision(precision, ranks.device) if ranks.is_first else None)
        self.updater = Updater(job, self.precision, ranks)
        self.state = State()
        self.metrics_seal: Seal | None = None
        self.saved_step = -1
        if checkpoint is None:
            self._announce()
        else:
            self.checkpointer.restore(checkpoint, self.updater.optimizer, self.setup)
            self.state = State.of(checkpoint.state["run"])
            if METRICS in checkpoint.state:  # older checkpoints have no seal
                self.metrics_seal = Seal(**checkpoint.state[METRICS])
        if job.settings.is_compiled:
            display.say(compile_layers(job.model))

    @property
    def setup(self) -> dict[str, Any]:
        """The execution settings that affect rounding."""
        passes = [segment.micro_batch for segment in self.job.settings.segments]
        return {
            "precision": self.precision.name, "threads": self.threads, "num_ranks": self.ranks.num, MICRO: passes,
        }  # fmt: skip

    def _announce(self) -> None:
        segments = ", ".join(
            f"{segment.name}: {steps:,} steps of {segment.batch} rows"
            for segment, steps in zip(self.job.settings.segments, self.job.steps_of_segments, strict=True)
        )
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        counts = count_parameters(self.job.model).sentence
        self.display.say(f"{counts}\n{segments}; {threads}; {self.precision.sentence}")

    def run(self) -> Result:
        """Train, and write the result if the run has ended."""
        if self.ended is not None:
            self.display.say(f"{self.folder}: {self.ended.sentence}; nothing to do")
            return self.ended
        names = self.job.settings.trackers if self.ranks.is_first else ()
        with (
            stop_request() as stop,
            closing(Trackers(names, self.folder, self.display.say)) as trackers,
            closing(self._open_metrics()) as metrics,
            explain_memory_errors(),
        ):
            self.metrics, self.trackers = metrics, trackers
            self.watch = Watch(self.job, self.folder, metrics, trackers, stop)
            if self.ranks.is_first:
                write_config(self.job, self.folder)
            trackers.start(self._make_title(), self.job.record, self.state.step)
            try:
                result = self._make_updates(stop)
            except DivergedError as error:
                self._save()
                result = self._make_result("diverged", error.args[0])
            if result.status in ENDS and self.ranks.is_first:
                metrics.sync()
                write_json(self.folder / RESULT, {**result.record(), METRICS: asdict(metrics.seal)})
        self.display.say(result.sentence)
        return result

    def _make_title(self) -> RunTitle:
        return RunTitle(self.job.settings.project or PROJECT, self.job.title or self.folder.resolve().name)

    def _open_metrics(self) -> Any:
        if not self.ranks.is_first:
            return NoMetrics()
        return Metrics(self.folder / METRICS, self.display.say, self.state.step or -1, self.metrics_seal)

    def _make_updates(self, stop: StopRequest) -> Result:
        self.updater.move_to(self.state.step)
        self.clock = time.perf_counter()
        if self.state.watched_step < self.state.step and not self._observe():
            return self._interrupt()
        for segment, start, stop_step in self._iterate_segments(self.state.step):
            share = RankShare(self.ranks.rank, self.ranks.num, self.job.settings.segments[segment].micro_batch)
            stream = self.job.streams[segment]
            for update in make_updates(stream, share, self.state.step - start, stop_step - start):
                if self._is_stale():
                    return self._make_result("stopped early")
                self._make_update(update, segment)
                is_stopped = self.ranks.sum(float(bool(stop)))[0] > 0
                # After the last update, only observing can be interrupted.
                if not self._observe() or (is_stopped and self.state.step < self.job.num_steps):
                    return self._interrupt()
                if self.state.step % self.job.settings.checkpoint_every == 0 or self._is_stale():
                    self._save()
        self._save()
        return self._make_result("finished")

    def _iterate_segments(self, step: int) -> Iterator[tuple[int, int, int]]:
        """Yield the segments that have not ended at a step, each with its first step and the one after its last."""
        start = 0
        for number, steps in enumerate(self.job.steps_of_segments):
            if step < start + steps:
                yield number, start, start + steps
            start += steps

    def _make_update(self, update: Update, segment: int) -> None:
        outcome = self.updater.compute(update, self.state.step, segment)
        times = self.job.settings.divergence
        if not outcome.is_finite:
            self._diverge(update, outcome, segment, "the loss or its gradient is not finite")
        if self.state.would_diverge(outcome.loss, times):
            reason = f"the mean loss of the last steps is over {times:g} times the first"
            self._diverge(update, outcome, segment, reason)
        self.updater.apply(outcome)
        self.state.add_update(outcome.loss, outcome.tokens)
        self.updater.move_to(self.state.step)
        self._record_update(outcome, update.position.epoch)

    def _record_update(self, outcome: Outcome, epoch: int) -> None:
        now = time.perf_counter()
        self.state.seconds, self.clock = self.state.seconds + now - self.clock, now
        speed = self.display.advance(self.state.step, self.job.num_steps, self.state.tokens, outcome.loss)
        if self.state.step % self.job.settings.log_every and self.state.step != self.job.num_steps:
            return
        values = {
            "loss": self.state.take_mean_loss(), "lr": outcome.lr, "gradient_norm": outcome.gradient_norm,
            "tokens": self.state.tokens, "epoch": epoch,
        }  # fmt: skip
        timing = {"tokens_per_second": speed, "seconds": self.state.seconds}
        if self.metrics.write("train", self.state.step, values, timing):
            self.trackers.log(self.state.step, {**values, **timing}, "train")

    def _observe(self) -> bool:
        """Evaluate, trace and sample if due; return whether that was completed."""
        evaluation = self.ranks.broadcast(self.watch.observe(self.state.step) if self.ranks.is_first else None)
        if evaluation == "interrupted":
            return False
        if isinstance(evaluation, NotFiniteError):
            self._diverge_after_update(str(evaluation))
        self.state.watched_step = self.state.step
        if evaluation is not None:
            is_best = self.watch.is_regular(self.state.step) and self.state.add_evaluation(
                evaluation, higher_is_better=self.job.task.higher_is_better
            )
            self.display.say(f"{evaluation.sentence}{', the best so far' if is_best else ''}")
            if is_best:
                self._save()
        self.clock = time.perf_counter()
        return True

    def _is_stale(self) -> bool:
        patience = self.job.settings.patience
        return patience is not None and self.state.num_stale >= patience

    def _save(self) -> None:
        """Write a checkpoint, after the metrics up to it are synced to the disk."""
        if self.ranks.is_first and self.saved_step != self.state.step:
            self.saved_step = self.state.step
            self.metrics.sync()
            facts = {**self.setup, METRICS: asdict(self.metrics.seal)}
            self.checkpointer.write(self.state, self.updater.optimizer, facts)

    def _interrupt(self) -> Result:
        self._save()
        self.display.say("the same command resumes the run from here")
        return self._make_result("interrupted")

    def _diverge(self, update: Update, outcome: Outcome, segment: int, reason: str) -> NoReturn:
        norms = compute_weight_norms(self.job.model).items()
        largest = dict(sorted(norms, key=lambda pair: (not math.isnan(pair[1]), -pair[1]))[:NUM_NORMS])
        raise DivergedError(Divergence(
            self.state.step, reason, outcome.loss, outcome.gradient_norm, outcome.lr,
            self.job.settings.segments[segment].name, update.position.epoch,
            self.job.streams[segment].names(update.rows), largest,
        ))  # fmt: skip

    def _diverge_after_update(self, reason: str) -> NoReturn:
        """End the run with a record of the update after which the model's outputs are not finite."""
        step = self.state.step - 1
        segment, start, _ = next(self._iterate_segments(step))
        arrangement = self.job.streams[segment].arrangement
        position = Position(*divmod(step - start, arrangement.steps_per_epoch))
        outcome = Outcome(self.state.recent_losses[-1], math.nan, self.updater.compute_lr(step, segment), 0)
        self._diverge(Update(position, arrangement.rows(*position), []), outcome, segment, reason)

    def _make_result(self, status: Status, divergence: Divergence | None = None) -> Result:
        state, counts = self.state, count_parameters(self.job.model)
        loss = state.recent_losses[-1] if state.recent_losses else None
        numbers = {str(part): number for part, number in counts.trained.items() if number}
        return Result(
            status, state.step, self.job.num_steps, loss, state.last, state.best, divergence, state.tokens,
            state.seconds, {**numbers, "trained": counts.num_trained, "total": counts.num_total},
        )  # fmt: skip
