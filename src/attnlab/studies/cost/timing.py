"""The timing of a run: the run is built, its workload counted, and a few of its updates and evaluation batches timed.

As for training, a server (`run/workers.py`) imports everything once and forks a process for each run, so that its
memory can be measured. The checkpoint that is written for it is in a temporary folder.
"""

import dataclasses
import resource
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from pydantic import TypeAdapter

from attnlab.data.tokenizers.training import TOKENIZER_KINDS
from attnlab.errors import StudyError
from attnlab.training import Examples, Job, RunSpec, build
from attnlab.training.job.build import find_tokenizer, open_data
from attnlab.training.job.stream import RankShare, make_updates
from attnlab.training.job.weights import silence_transformers
from attnlab.training.loop.checkpointer import Checkpointer
from attnlab.training.loop.evaluation import EVALUATION_SEED
from attnlab.training.loop.identity import write_config
from attnlab.training.loop.machine import choose_threads, explain_memory_errors
from attnlab.training.loop.precision import choose_precision
from attnlab.training.loop.ranks import join_ranks
from attnlab.training.loop.update import Updater
from attnlab.training.record.folder import save_tokenizer
from attnlab.training.record.state import State

from ..run.server import load_plugins, serve
from ..run.workers import LocalWorkers, RunOrder
from ..run.workload import Workload, count_workload

MAX_UPDATES = 30
MAX_BATCHES = 4
ROOM = 2
"""Times the size of a checkpoint that must be free on the disk to write one."""
RESULT = "timing.json"
SERVER = "attnlab.studies.cost.timing"


@dataclass(frozen=True)
class RunTiming:
    """Measurements of a run, in seconds and in bytes."""

    start: float
    """Once: data, model, hashes, and the additional time of the first update."""
    updates: tuple[float, ...]
    """One, in each segment."""
    evaluation: float
    """One, of all examples."""
    known: float
    """Scoring the training examples once at the end; 0 if the run does not do that."""
    checkpoint: float | None
    """Writing one; None if the temporary folder has no space for it."""
    memory: int
    """The growth of the peak memory of the process, on a GPU the peak of what was allocated there."""
    num_timed: int
    """Updates that were timed."""

    def average_updates(self, work: Workload) -> float:
        """Return the seconds of one update, on average over the segments."""
        updates = zip(work.segments, self.updates, strict=True)
        return sum(segment.num_steps * seconds for segment, seconds in updates) / work.num_steps

    def add_up(self, work: Workload) -> float:
        """Return the seconds of a whole run."""
        evaluations = work.num_evaluations * self.evaluation + self.known
        checkpoints = work.num_checkpoints * (self.checkpoint or 0.0)
        return self.start + work.num_steps * self.average_updates(work) + evaluations + checkpoints


TimedRun = tuple[Workload, RunTiming | None]
"""The workload of a run and its timing, which is None if nothing was timed."""


class RunTimer(ExitStack):
    """Times runs in a separate process, which starts with the first one."""

    def __init__(self, plugins: Sequence[str] = ()) -> None:
        super().__init__()
        self.plugins = plugins
        self.workers: LocalWorkers | None = None
        self.folder = self.enter_context(tempfile.TemporaryDirectory(prefix="attnlab-timing-"))
        self.opening = 0.0
        """Seconds until the server had imported everything, which the server of the runs has to do as well."""

    def time_run(self, title: str, run: RunSpec, first: RunSpec | None, seconds: float) -> TimedRun:
        """Time a run. first: the run at the beginning of its chain of phases. seconds: for timing, 0 for none."""
        began = perf_counter()
        if self.workers is None:
            self.workers = workers = LocalWorkers(self.plugins, SERVER)
            self.push(lambda kind, *_: workers.close(at_once=kind is not None))
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        order = {"run": run.model_dump(mode="json"), "first": None if first is None else first.config}
        self.workers.send(RunOrder(title, str(folder), {**order, "seconds": seconds}))
        while True:
            for event in self.workers.receive():
                if event.kind == "finished":
                    return TypeAdapter(TimedRun).validate_json((folder / RESULT).read_bytes())
                if event.kind != "started":
                    raise StudyError(f"{title}: {event.detail or 'its timing was interrupted'}")
                self.opening = self.opening or perf_counter() - began


def time_run(folder: Path, order: Mapping[str, Any]) -> bool:
    """Time a run in this process, and write its workload, and its timing if it has a budget for that, into a folder."""
    memory, began, threads = _get_peak_bytes(), perf_counter(), torch.get_num_threads()
    timing = None
    with tempfile.TemporaryDirectory(dir=folder) as place, explain_memory_errors():
        try:
            with silence_transformers():
                job = build(_prepare_run(order, Path(place)))
            job.model.train()
            workload = count_workload(job)
            if order["seconds"]:
                torch.set_num_threads(choose_threads(job.threads, 1, job.operations))
                timing = _time_parts(job, Path(place) / "run", order["seconds"], began)
        finally:
            torch.set_num_threads(threads)
    if timing is not None and not torch.cuda.is_available():
        timing = dataclasses.replace(timing, memory=_get_peak_bytes() - memory)
    (folder / RESULT).write_bytes(TypeAdapter(TimedRun).dump_json((workload, timing)))
    return False


def time_updates(
    updater: Updater, number: int, most: int, clock: Callable[[], float] = perf_counter
) -> Generator[tuple[float, int]]:
    """Make updates of a segment, batches included; yield the seconds and the tokens of each."""
    job, micro_batch = updater.job, updater.job.settings.segments[number].micro_batch
    made = make_updates(job.streams[number], RankShare(micro_batch=micro_batch), 0, most)
    with closing(made):  # type: ignore[type-var]
        began = clock()
        for place, update in enumerate(made):
            step = min(place, job.num_steps - 1)
            updater.move_to(step)
            outcome = updater.compute(update, step, number)
            updater.apply(outcome)
            now = clock()
            yield now - began, outcome.tokens
            began = now


def _prepare_run(order: Mapping[str, Any], folder: Path) -> RunSpec:
    """Return the run to time; in a later phase it has the tokenizer that was trained for the first phase."""
    run = RunSpec.of(order["run"])
    if order["first"] is None or str(run.data.tokenizer).partition(":")[0] not in TOKENIZER_KINDS:
        return run
    first = RunSpec.of(order["first"])
    save_tokenizer(find_tokenizer(first, open_data(first.data.train, "train", first.data)), folder / "tokenizer")
    return run.replace(data=run.data.replace(tokenizer=str(folder / "tokenizer")))


def _time_parts(job: Job, folder: Path, budget: float, began: float) -> RunTiming:
    """Time the parts of a run. budget: seconds for the updates, and as many for the evaluation."""
    with join_ranks() as ranks:
        job.model.to(ranks.device)  # type: ignore[arg-type]
        folder.mkdir()
        checkpointer = Checkpointer(job, folder, lambda message: None)
        write_config(job, folder)
        updater = Updater(job, choose_precision(job.settings.precision, ranks.device), ranks)
        start = perf_counter() - began
        paces = [_time_segment(updater, number, budget / len(job.streams)) for number in range(len(job.streams))]
        start += max(0.0, paces[0][0] - paces[0][1])
        groups = (job.dev, job.known, job.tune)
        evaluation, known, tuning = (_time_evaluation(job, examples, budget) for examples in groups)
        checkpoint = _time_checkpoint(checkpointer, updater)
        memory = torch.cuda.max_memory_allocated(ranks.device) if ranks.device.type == "cuda" else 0
    seconds = tuple(seconds for _, seconds, _ in paces)
    return RunTiming(
        start, seconds, evaluation + tuning, known, checkpoint, memory, sum(number for _, _, number in paces)
    )


def _time_segment(updater: Updater, number: int, budget: float) -> tuple[float, float, int]:
    """Return the seconds of a segment's first update, those of a later one of mean length, and how many were timed."""
    first, total, paces = 0.0, 0.0, list[float]()
    with closing(time_updates(updater, number, 1 + MAX_UPDATES)) as times:
        for seconds, tokens in times:
            if not first:
                first = seconds
                continue
            # Per token, since rows of similar length share a batch, and a few batches do not have the mean length.
            paces.append(seconds / max(1, tokens))
            total += seconds
            if first + total > budget:
                break
    stream = updater.job.streams[number]
    rows = len(stream.arrangement.rows(0, 0))
    return first, statistics.median(paces) * rows * stream.mean_length, len(paces)


def _time_evaluation(job: Job, examples: Examples | None, budget: float) -> float:
    """Return the seconds of an evaluation, from a few batches spread over all lengths."""
    if examples is None:
        return 0.0
    features = sorted(examples.features, key=len)
    batches = [features[start : start + examples.batch] for start in range(0, len(features), examples.batch)]
    job.task.predict(job.model, [job.task.collate(features[:1], seed=EVALUATION_SEED)])  # warm
    num = min(MAX_BATCHES, len(batches))
    chosen = [batches[(2 * place + 1) * len(batches) // (2 * num)] for place in range(num)]
    tokens, began = 0, perf_counter()
    for batch in chosen:
        job.task.predict(job.model, [job.task.collate(batch, seed=EVALUATION_SEED)])
        tokens += sum(map(len, batch))
        if perf_counter() - began > budget:
            break
    return (perf_counter() - began) / tokens * sum(map(len, features))


def _time_checkpoint(checkpointer: Checkpointer, updater: Updater) -> float | None:
    """Return the seconds of writing a checkpoint, None if the disk has no space for one."""
    free = shutil.disk_usage(checkpointer.checkpoints.folder.parent).free
    if free < ROOM * count_workload(checkpointer.job).checkpoint_bytes:
        return None
    began = perf_counter()
    checkpointer.write(State(step=1), updater.optimizer, {})
    return perf_counter() - began


def _get_peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    load_plugins()
    serve(time_run)
