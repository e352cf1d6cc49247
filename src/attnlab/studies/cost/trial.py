"""A run tried out: built for real, counted, and a few of its updates and evaluation batches timed.

A process of its own imports everything once and forks a child for each trial, as the study's server does for runs, so
that the memory a trial takes is its own. Talked to in lines of JSON, one trial after the other. What is written to the
disk, one checkpoint, is in a folder that is gone afterwards.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import runpy
import shutil
import signal
import statistics
import sys
import tempfile
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from attnlab.errors import AttnlabError
from attnlab.training import Examples, Job, RunSpec, build
from attnlab.training.build import TRAINED, find_tokenizer, opened
from attnlab.training.evaluation import EVALUATION_SEED
from attnlab.training.folder import leave_config, save_tokenizer
from attnlab.training.machine import choose_threads, whole_memory
from attnlab.training.precision import choose_precision
from attnlab.training.ranks import joined
from attnlab.training.savepoint import Savepoints
from attnlab.training.state import State
from attnlab.training.stream import Share, updates
from attnlab.training.update import Updater
from attnlab.training.weights import quiet

from ..run.server import end_with_parent
from .workload import Workload, count_workload

MOST_UPDATES = 30
MOST_BATCHES = 4
ROOM = 2
"""Times the size of a checkpoint that a disk must have left for one to be tried."""


@dataclass(frozen=True)
class RunTiming:
    """What was measured of a run, in seconds, and in bytes."""

    start: float
    """Once: data, model, hashes, and what the first update takes longer than others."""
    updates: tuple[float, ...]
    """One, in each segment."""
    evaluation: float
    """One, of all examples."""
    known: float
    """Scoring what it trains on, once at the end; 0 where that is not asked for."""
    checkpoint: float | None
    """Writing one; None where the temporary folder had no room for it."""
    memory: int
    """The growth of the process's peak, on a GPU what was allocated there at most."""
    num_timed: int
    """Updates that were timed."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> RunTiming:
        """Read what a trial answered."""
        return cls(**{**record, "updates": tuple(record["updates"])})

    def average_updates(self, work: Workload) -> float:
        """Return the seconds of one update, on average over the segments."""
        updates = zip(work.segments, self.updates, strict=True)
        return sum(segment.num_steps * seconds for segment, seconds in updates) / work.num_steps

    def add_up(self, work: Workload) -> float:
        """Return the seconds of a whole run."""
        evaluations = work.num_evaluations * self.evaluation + self.known
        checkpoints = work.num_checkpoints * (self.checkpoint or 0.0)
        return self.start + work.num_steps * self.average_updates(work) + evaluations + checkpoints


def tried(order: Mapping[str, Any]) -> dict[str, Any]:
    """Try a run; return its workload, and its timing where seconds were given for that."""
    memory, began = peak_bytes(), perf_counter()
    threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory(dir=order["place"]) as place, whole_memory():
        try:
            with quiet():
                job = build(with_tokenizer(order, Path(place)))
            job.model.train()
            workload = count_workload(job).record()
            if not order["seconds"]:
                return {"workload": workload}
            torch.set_num_threads(choose_threads(job.threads, 1, job.operations))
            timing = timed(job, Path(place) / "run", order["seconds"], began)
        finally:
            torch.set_num_threads(threads)
    if not torch.cuda.is_available():
        timing = dataclasses.replace(timing, memory=peak_bytes() - memory)
    return {"workload": workload, "timing": dataclasses.asdict(timing)}


def with_tokenizer(order: Mapping[str, Any], folder: Path) -> RunSpec:
    """Return the run of an order; one that comes after another has the tokenizer that was trained for that one."""
    run = RunSpec.of(order["config"])
    if order["first"] is None or str(run.data.tokenizer).partition(":")[0] not in TRAINED:
        return run
    first = RunSpec.of(order["first"])
    save_tokenizer(find_tokenizer(first, opened(first.data.train, "train", first.data.column)), folder / "tokenizer")
    return run.replace(data=run.data.replace(tokenizer=str(folder / "tokenizer")))


def timed(job: Job, folder: Path, budget: float, began: float) -> RunTiming:
    """Time what a run consists of. budget: seconds for the updates, and as many for the evaluation."""
    with joined() as ranks:
        job.model.to(ranks.device)  # type: ignore[arg-type]
        folder.mkdir()
        savepoints = Savepoints(job, folder, unheard)
        leave_config(job, folder)
        updater = Updater(job, choose_precision(job.settings.precision, ranks.device), ranks)
        start = perf_counter() - began
        paces = [pace_of(updater, number, budget / len(job.streams)) for number in range(len(job.streams))]
        start += max(0.0, paces[0][0] - paces[0][1])
        evaluation, known = (evaluation_seconds(job, examples, budget) for examples in (job.dev, job.known))
        checkpoint = checkpoint_seconds(savepoints, updater)
        memory = torch.cuda.max_memory_allocated(ranks.device) if ranks.device.type == "cuda" else 0
    seconds = tuple(one[1] for one in paces)
    return RunTiming(start, seconds, evaluation, known, checkpoint, memory, sum(one[2] for one in paces))


def pace_of(updater: Updater, number: int, budget: float) -> tuple[float, float, int]:
    """Return the seconds of a segment's first update, those of a later one of mean length, and how many were timed."""
    first, total, paces = 0.0, 0.0, list[float]()
    with closing(time_updates(updater, number, 1 + MOST_UPDATES)) as times:
        for seconds, tokens in times:
            if not first:
                first = seconds
                continue
            # By tokens, since rows of like length share a batch, and those of a few batches are not the mean.
            paces.append(seconds / max(1, tokens))
            total += seconds
            if first + total > budget:
                break
    stream = updater.job.streams[number]
    rows = len(stream.arrangement.rows(0, 0))
    return first, statistics.median(paces) * rows * stream.mean_length, len(paces)


def time_updates(
    updater: Updater, number: int, most: int, clock: Callable[[], float] = perf_counter
) -> Generator[tuple[float, int]]:
    """Make updates of a segment, batches included; yield the seconds and the tokens of each."""
    job, micro_batch = updater.job, updater.job.settings.segments[number].micro_batch
    made = updates(job.streams[number], Share(micro_batch=micro_batch), 0, most)
    with closing(made):  # type: ignore[type-var]
        began = clock()
        for place, update in enumerate(made):
            step = min(place, job.num_steps - 1)
            updater.move_to(step)
            outcome = updater.compute(update, step, number)
            updater.take(outcome)
            now = clock()
            yield now - began, outcome.tokens
            began = now


def evaluation_seconds(job: Job, examples: Examples | None, budget: float) -> float:
    """Return what an evaluation takes, from a few batches spread over all lengths."""
    if examples is None:
        return 0.0
    features = sorted(examples.features, key=len)
    batches = [features[start : start + examples.batch] for start in range(0, len(features), examples.batch)]
    job.task.predict(job.model, [job.task.collate(features[:1], seed=EVALUATION_SEED)])  # warm
    num = min(MOST_BATCHES, len(batches))
    chosen = [batches[(2 * place + 1) * len(batches) // (2 * num)] for place in range(num)]
    tokens, began = 0, perf_counter()
    for batch in chosen:
        job.task.predict(job.model, [job.task.collate(batch, seed=EVALUATION_SEED)])
        tokens += sum(map(len, batch))
        if perf_counter() - began > budget:
            break
    return (perf_counter() - began) / tokens * sum(map(len, features))


def checkpoint_seconds(savepoints: Savepoints, updater: Updater) -> float | None:
    """Return what writing a checkpoint takes; None where the disk has no room to try."""
    free = shutil.disk_usage(savepoints.checkpoints.folder.parent).free
    if free < ROOM * count_workload(savepoints.job).checkpoint_bytes:
        return None
    began = perf_counter()
    savepoints.keep(State(step=1), updater.optimizer, {})
    return perf_counter() - began


def unheard(message: str) -> None:
    """Leave out what a run says of its checkpoints: there is none before this one."""


def peak_bytes() -> int:
    """Return the most memory that this process has held at once."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@contextmanager
def answering() -> Iterator[int]:
    """Keep the way to the study for answers alone: whatever else is printed goes to stderr."""
    way = os.dup(1)
    os.dup2(2, 1)
    try:
        yield way
    finally:
        os.close(way)


def answer(way: int, facts: Mapping[str, Any]) -> None:
    """Send one line, where the study still listens."""
    rest = memoryview((json.dumps(facts) + "\n").encode())
    try:
        while rest:
            rest = rest[os.write(way, rest) :]
    except BrokenPipeError:
        return


def attempt(order: Mapping[str, Any], way: int) -> None:
    """Try a run in this process, and answer; a fault of ours shows its traceback too."""
    try:
        found = tried(order)
    except AttnlabError as error:
        found = {"error": str(error)}
    except Exception as error:
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"}
    answer(way, found)


def serve() -> None:
    """Take orders until there are no more."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with answering() as way:
        answer(way, {"ready": True})
        for line in iter(sys.stdin.readline, ""):
            child = os.fork()
            if not child:
                try:
                    end_with_parent()
                    attempt(json.loads(line), way)
                finally:
                    sys.stderr.flush()
                    os._exit(0)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status:
                hint = "; was there memory enough?" if status == -signal.SIGKILL else ""
                answer(way, {"error": f"its process was ended by signal {-status}{hint}"})


if __name__ == "__main__":
    for plugin in sys.argv[1:]:
        runpy.run_path(plugin, run_name="attnlab_plugin")
    serve()
