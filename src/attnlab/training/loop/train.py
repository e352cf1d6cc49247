"""The loop: one run from its first update, or from its last checkpoint, to its end.

A step: compute gradients → stop if they are no numbers → update → write down → look (evaluate, trace, sample) →
checkpoint. All that is random is a function of the seed and the step, so a step computed again gives the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import torch

from attnlab.data import Position

from ..job.job import Job
from ..job.stream import RankShare, Update, updates
from ..record import Metrics, locked, write_json
from ..record.folder import MICRO, RESULT, read_result
from ..record.state import State
from ..result import ENDS, Divergence, Result, Status
from ..tuning import count_parameters
from .compiling import compile_layers
from .identity import check_config, leave_config
from .machine import choose_threads, whole_memory
from .precision import choose_precision
from .progress import Display
from .ranks import Ranks, joined
from .savepoint import Savepoints
from .stopping import StopRequest, stop_request
from .trace import weight_norms
from .update import Outcome, Updater
from .watch import Diverged, Nowhere, Watch

NUM_NORMS = 5


def train(job: Job, folder: str | Path, display: Display | None = None) -> Result:
    """Train to the end, or go on where a process stopped; a run that has ended is not repeated."""
    path = Path(folder)
    with joined() as ranks:
        if not ranks.is_first:
            return Training(job, path, ranks, Display(is_quiet=True)).go()
        with locked(path), display or Display() as shown:
            check_config(job, path)
            return Training(job, path, ranks, shown).go()


class DivergedError(Exception):
    """A loss or a gradient that is no number, or grew past its bound."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(divergence.reason)
        self.divergence = divergence


class Place(NamedTuple):
    """A segment, and the steps of the run that are its own."""

    segment: int
    start: int
    stop: int


class Training:
    """One run at work."""

    def __init__(self, job: Job, folder: Path, ranks: Ranks, display: Display) -> None:
        self.job, self.folder, self.ranks, self.display = job, folder, ranks, display
        self.ended: Result | None = ranks.told(read_result(folder) if ranks.is_first else None)
        if self.ended is not None:
            return
        job.model.to(ranks.device)  # type: ignore[arg-type]
        job.model.train()
        self.savepoints = Savepoints(job, folder, display.say)
        kept = ranks.told(self.savepoints.checkpoints.last() if ranks.is_first else None)
        asked = kept.state["precision"] if kept else job.settings.precision
        threads = job.threads
        if threads is None and kept and kept.state["num_ranks"] == ranks.num:
            threads = kept.state["threads"]
        self.threads = ranks.told(choose_threads(threads, ranks.num, job.operations / ranks.num))
        torch.set_num_threads(self.threads)
        self.precision = ranks.told(choose_precision(asked, ranks.device) if ranks.is_first else None)
        self.updater = Updater(job, self.precision, ranks)
        self.state = State()
        self.kept_step = -1
        if kept is None:
            self.say_start()
        else:
            self.savepoints.restore(kept, self.updater.optimizer, self.setup)
            self.state = State.of(kept.state["run"])
        if job.settings.is_compiled:
            display.say(compile_layers(job.model))

    @property
    def setup(self) -> dict[str, Any]:
        """What rounding depends on besides the numbers themselves."""
        passes = [segment.micro_batch for segment in self.job.settings.segments]
        return {
            "precision": self.precision.name, "threads": self.threads,
            "num_ranks": self.ranks.num, MICRO: passes,
        }  # fmt: skip

    def say_start(self) -> None:
        """Tell what begins."""
        segments = ", ".join(
            f"{segment.name}: {steps:,} steps of {segment.batch} rows"
            for segment, steps in zip(self.job.settings.segments, self.job.steps_of_segments, strict=True)
        )
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        counts = count_parameters(self.job.model).sentence
        self.display.say(f"{counts}\n{segments}; {threads}; {self.precision.sentence}")

    def go(self) -> Result:
        """Train, and leave a result where the run has come to its end."""
        if self.ended is not None:
            self.display.say(f"{self.folder}: {self.ended.sentence}; nothing to do")
            return self.ended
        with stop_request() as stop, closing(self.open_metrics()) as metrics, whole_memory():
            self.metrics = metrics
            self.watch = Watch(self.job, self.folder, metrics, self.ranks, stop)
            if self.ranks.is_first:
                leave_config(self.job, self.folder)
            try:
                result = self.steps(stop)
            except DivergedError as error:
                self.keep()
                result = self.result("diverged", error.divergence)
            if result.status in ENDS and self.ranks.is_first:
                metrics.sync()
                write_json(self.folder / RESULT, result.record())
        self.display.say(result.sentence)
        return result

    def open_metrics(self) -> Any:
        """Open the metrics; only the first process writes any."""
        if not self.ranks.is_first:
            return Nowhere()
        return Metrics(self.folder / "metrics.jsonl", self.display.say, self.state.step or -1)

    def steps(self, stop: StopRequest) -> Result:
        """Make every update that is left."""
        self.updater.move_to(self.state.step)
        self.clock = time.perf_counter()
        if self.state.watched_step < self.state.step and not self.look():
            return self.interrupt()
        for place in self.places(self.state.step):
            share = RankShare(self.ranks.rank, self.ranks.num, self.job.settings.segments[place.segment].micro_batch)
            stream = self.job.streams[place.segment]
            for update in updates(stream, share, self.state.step - place.start, place.stop - place.start):
                if self.is_stale():
                    return self.result("stopped early")
                self.make(update, place)
                is_asked = self.ranks.total(float(bool(stop)))[0] > 0
                # After the last update there is nothing left to stop but a look at the model.
                if not self.look() or (is_asked and self.state.step < self.job.num_steps):
                    return self.interrupt()
                if self.state.step % self.job.settings.checkpoint_every == 0 or self.is_stale():
                    self.keep()
        self.keep()
        return self.result("finished")

    def places(self, step: int) -> Iterator[Place]:
        """Yield the segments that are not over at a step."""
        start = 0
        for number, steps in enumerate(self.job.steps_of_segments):
            if step < start + steps:
                yield Place(number, start, start + steps)
            start += steps

    def make(self, update: Update, place: Place) -> None:
        """Make one update, and write it down."""
        outcome = self.updater.compute(update, self.state.step, place.segment)
        times = self.job.settings.divergence
        if not outcome.is_finite:
            self.diverge(update, outcome, place, "the loss or its gradient is no finite number")
        if self.state.would_diverge(outcome.loss, times):
            self.diverge(update, outcome, place, f"the mean loss of the last steps is over {times:g} times the first")
        self.updater.take(outcome)
        self.state.add(outcome.loss, outcome.tokens)
        self.updater.move_to(self.state.step)
        self.write_down(outcome, update.position.epoch)

    def write_down(self, outcome: Outcome, epoch: int) -> None:
        """Show and record an update."""
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
        self.metrics.write("train", self.state.step, values, timing)
        self.watch.chart({**values, **timing}, self.state.step)

    def look(self) -> bool:
        """Evaluate, trace and sample where that is due; tell whether it came to its end."""
        evaluation = self.ranks.told(self.watch.look(self.state.step) if self.ranks.is_first else None)
        if evaluation == "interrupted":
            return False
        if isinstance(evaluation, Diverged):
            self.diverge_after(evaluation.reason)
        self.state.watched_step = self.state.step
        if evaluation is not None:
            is_best = self.watch.is_regular(self.state.step) and self.state.note(
                evaluation, higher_is_better=self.job.task.higher_is_better
            )
            self.display.say(f"{evaluation.sentence}{', the best so far' if is_best else ''}")
            if is_best:
                self.keep()
        self.clock = time.perf_counter()
        return True

    def is_stale(self) -> bool:
        """Tell whether evaluations have not got better for as long as was asked for."""
        patience = self.job.settings.patience
        return patience is not None and self.state.num_stale >= patience

    def keep(self) -> None:
        """Write a checkpoint; the metrics up to it are on the disk before it is."""
        if self.ranks.is_first and self.kept_step != self.state.step:
            self.kept_step = self.state.step
            self.metrics.sync()
            self.savepoints.keep(self.state, self.updater.optimizer, self.setup)

    def interrupt(self) -> Result:
        """Leave a checkpoint to go on from."""
        self.keep()
        self.display.say("the same command goes on from here")
        return self.result("interrupted")

    def diverge(self, update: Update, outcome: Outcome, place: Place, reason: str) -> None:
        """End the run with a record of where it diverged."""
        found = Divergence(
            self.state.step, reason, outcome.loss, outcome.gradient_norm, outcome.lr,
            self.job.settings.segments[place.segment].name, update.position.epoch,
            self.job.streams[place.segment].names(update.rows), self.largest_norms(),
        )  # fmt: skip
        raise DivergedError(found)

    def diverge_after(self, reason: str) -> None:
        """End the run with a record of the update after which the model answers with what is no number."""
        step = self.state.step - 1
        place = next(place for place in self.places(step) if step < place.stop)
        stream = self.job.streams[place.segment]
        position = Position(*divmod(step - place.start, stream.arrangement.steps_per_epoch))
        rows = stream.arrangement.rows(*position)
        outcome = Outcome(self.state.recent_losses[-1], math.nan, self.updater.rate(step, place.segment), 0)
        self.diverge(Update(position, rows, []), outcome, place, reason)

    def largest_norms(self) -> dict[str, float]:
        """Return the norms of the largest weights, by name."""
        norms = weight_norms(self.job.model).items()
        return dict(sorted(norms, key=lambda pair: (not math.isnan(pair[1]), -pair[1]))[:NUM_NORMS])

    def result(self, status: Status, divergence: Divergence | None = None) -> Result:
        """Say what became of the run."""
        state, counts = self.state, count_parameters(self.job.model)
        loss = state.recent_losses[-1] if state.recent_losses else None
        numbers = {str(part): number for part, number in counts.trained.items() if number}
        return Result(
            status, state.step, self.job.num_steps, loss, state.last, state.best, divergence, state.tokens,
            state.seconds, {**numbers, "trained": counts.num_trained, "total": counts.num_total},
        )  # fmt: skip
