"""From a run as data to a job that could start now: task, tokenizer, examples, batches, model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnlab.data import Source, TokenFile, check_belongs, load_tokenizer, open_source, pack, train_tokenizer
from attnlab.data.draws import keys_of, name_key
from attnlab.errors import TrainingError
from attnlab.install import mechanism_of
from attnlab.tasks import load as load_task
from attnlab.tasks.batch import Feature

from ..positions import check_positions
from ..record.folder import TOKENIZER
from ..spec import RunSpec, Segment, find_run_folder
from ..tuning import apply_tuning
from .fresh import FreshStream
from .job import Examples, Job
from .stream import FeatureStream, Stream, TokenStream
from .weights import Say, build_model

TRAINED = ("word", "wordpiece", "bpe")
SEGMENT = name_key("stage")  # the text decides what is drawn, so it stays
LANGUAGE_HEADS = ("AutoModelForCausalLM", "AutoModelForMaskedLM")


def build(run: RunSpec, say: Say = str) -> Job:
    """Build all that a run needs; `say` is told what a user should know of it."""
    task = load_task(run.task, **run.task_settings)
    check_kind(run, task)
    is_probe = hasattr(task, "source")
    source = opened(run.data.train or (task.source if is_probe else ""), "train", run.data.column)
    tokenizer = None if is_probe else find_tokenizer(run, source)
    model = build_model(run.start, task, tokenizer, run.seed, say)
    if tokenizer is not None:
        check_belongs(tokenizer, model.config)
    apply_tuning(model, run.tuning, has_new_head=task.head not in LANGUAGE_HEADS, seed=run.seed)
    streams = make_streams(run, task, source, tokenizer, say)
    config = run.config
    # As the mechanism spells itself: two ways to write one line are one run.
    config["start"]["mechanism"] = str(mechanism_of(model))
    dev = make_dev(run, task, tokenizer, say)
    for stream in streams:
        check_positions(model, stream.longest, "a row to train on")
    if dev is not None:
        check_positions(model, max(map(len, dev.features)), "a row to evaluate on")
    known = make_known(run, task, source, tokenizer)
    return Job(model, task, streams, run, run.seed, dev, known, tokenizer, config, run.threads)


def check_kind(run: RunSpec, task: Any) -> None:
    """Refuse settings that are for other tasks than this one."""
    if hasattr(task, "max_len"):
        check_length("task_settings.max_len", task.max_len)
    if run.data.is_packed and task.name not in ("mlm", "clm"):
        raise TrainingError(f"packed rows train 'mlm' or 'clm', not '{task.name}'; leave data.is_packed out")
    counted = run.data.num_train is not None or run.num_scored is not None
    if getattr(task, "is_fresh", False) and counted:
        raise TrainingError(
            "data.num_train and num_scored count examples that are trained on again and again, and with "
            "task_settings.is_fresh there are none; leave them out"
        )


def opened(name: str, split: str, column: str | None = None) -> Source:
    """Open a source, the split of it where it has splits."""
    if not name:
        raise TrainingError("a run needs a source to train on (data.train); a probe alone generates its own")
    return open_source(name, split=split_in(name, split), column=column)


def split_in(name: str, split: str) -> str | None:
    """Return the split to ask a source for, None where it has none."""
    return split if name.startswith(("embedded:", "hf:")) or Path(name).expanduser().is_dir() else None


def find_tokenizer(run: RunSpec, source: Source) -> Any:
    """Load the tokenizer of a run, or train it on the run's text."""
    named = run.data.tokenizer
    if named is None and run.start.checkpoint is not None:
        of_run = find_run_folder(run.start.checkpoint)
        return load_tokenizer(of_run[0] / TOKENIZER if of_run else run.start.checkpoint)
    if named is None:
        raise TrainingError(
            "a new model needs a tokenizer (data.tokenizer): a directory, a file, or word, wordpiece or bpe to train"
        )
    kind, _, size = named.partition(":")
    if kind not in TRAINED:
        return load_tokenizer(named)
    if size and not size.isdigit():
        raise TrainingError(f"a tokenizer's size is a whole number, as in '{kind}:4000', not '{size}'")
    return train_tokenizer(source, kind, int(size) if size else None)  # type: ignore[arg-type]


def make_streams(run: RunSpec, task: Any, source: Source, tokenizer: Any, say: Say = str) -> list[Stream]:
    """Make what each segment trains on; segments of one length share their features."""
    segments = run.segments
    seeds = [segment_seed(run.seed, number) for number in range(len(segments))]
    if run.data.is_packed:
        tokens: TokenFile = pack(source, tokenizer)
        return [TokenStream(task, tokens, segment, seed) for segment, seed in zip(segments, seeds, strict=True)]
    if getattr(task, "is_fresh", False):
        probe = task.get_generator(source)
        return [FreshStream(task, probe, segment, seed) for segment, seed in zip(segments, seeds, strict=True)]
    examples = task.examples(source)[: run.data.num_train]
    made: dict[int | None, list[Any]] = {}
    streams: list[Stream] = []
    for segment, seed in zip(segments, seeds, strict=True):
        own = sized(task, segment)
        if segment.length not in made:
            made[segment.length] = own.features(examples, tokenizer)
            with_features(examples, made[segment.length], "to train on", say)
        streams.append(FeatureStream(own, made[segment.length], segment, seed))
    return streams


def segment_seed(seed: int, number: int) -> int:
    """Return the seed of a segment's order and masking: the run's own for the first, others after it."""
    return seed if number == 0 else int(keys_of(SEGMENT, seed, number) >> np.uint64(2))


def check_length(what: str, value: object) -> None:
    """Refuse a length of a row that leaves nothing to predict."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise TrainingError(f"{what} is a whole number of at least 2, not {value!r}")


def sized(task: Any, segment: Segment) -> Any:
    """Return a task with the length of a segment."""
    if segment.length is None:
        return task
    if not hasattr(task, "max_len"):
        raise TrainingError(f"the task '{task.name}' has no length to set; leave out that of segment '{segment.name}'")
    check_length(f"length of segment '{segment.name}'", segment.length)
    return dataclasses.replace(task, max_len=segment.length)


def with_features(examples: Sequence[Any], features: Sequence[Feature], purpose: str, say: Say) -> list[Any]:
    """Return the examples that features were made of; say how many have none, since there is nothing to predict."""
    keys = {feature.key for feature in features}
    kept = [one for one in examples if one.id in keys]
    if len(kept) < len(examples):
        first = next(one for one in examples if one.id not in keys)
        say(
            f"skipped {len(examples) - len(kept):,} of {len(examples):,} examples {purpose}: they leave nothing to "
            f"predict, such as {first.place}"
        )
    return kept


def make_dev(run: RunSpec, task: Any, tokenizer: Any, say: Say = str) -> Examples | None:
    """Make what a run is evaluated on; None where it names nothing and its training source has no dev split."""
    name = run.data.dev
    if name is None:
        own = run.data.train or getattr(task, "source", "")
        if split_in(own, "dev") is None:
            return None
        name = own
    # By name, since a task may know a split by a name of its own, as MNLI's two.
    wanted = name if run.data.column is None else opened(name, "dev", run.data.column)
    every = task.examples(wanted, split_in(name, "dev"))
    examples = every[: run.data.num_dev]
    cut = f" (data.num_dev = {run.data.num_dev})" if len(examples) < len(every) else ""
    say(f"evaluates on {len(examples):,} of the {len(every):,} examples of {name}{cut}")
    features = task.features(examples, tokenizer)
    return Examples(with_features(examples, features, "to evaluate on", say), features, rows_of_a_pass(run))


def make_known(run: RunSpec, task: Any, source: Source, tokenizer: Any) -> Examples | None:
    """Make what a run trains on and is scored on too; None where that was not asked for."""
    if run.num_scored is None:
        return None
    examples = task.examples(source)[: run.data.num_train][: run.num_scored]
    features = task.features(examples, tokenizer)
    return Examples(with_features(examples, features, "to score", str), features, rows_of_a_pass(run))


def rows_of_a_pass(run: RunSpec) -> int:
    """Return how many rows an evaluation feeds at a time."""
    return max(min(segment.micro_batch or segment.batch, segment.batch) for segment in run.segments)
