"""From a `RunSpec` to a job that is ready to start: task, tokenizer, examples, batches, model."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnlab.data import Source, check_belongs, load_tokenizer, open_source, pack, train_tokenizer
from attnlab.data.batches.sequences import RowLayout
from attnlab.data.draws import keys_of, name_key
from attnlab.data.tokenizers.training import TOKENIZER_KINDS
from attnlab.errors import TrainingError
from attnlab.inputs import expand_path, is_whole_number
from attnlab.install import mechanism_of
from attnlab.tasks import load as load_task
from attnlab.tasks.batch import Feature
from attnlab.tasks.feature_file import load_features

from ..record.folder import TOKENIZER
from ..spec import LANGUAGE, DataSource, RunSpec, Segment, find_run_folder
from ..tuning.apply import apply_tuning
from ..tuning.positions import check_positions
from .job import Examples, Job
from .stream import FeatureStream, FreshStream, Stream, TokenStream
from .weights import LANGUAGE_HEADS, Say, build_model

SEGMENT = name_key("stage")  # changing the text would change what is drawn


def build(run: RunSpec, say: Say = str) -> Job:
    """Build everything that a run needs; `say` is called with messages for the user."""
    task = load_task(run.task, **run.task_settings)
    _check_task(run, task)
    is_probe = hasattr(task, "source")
    source = open_data(run.data.train or (task.source if is_probe else ""), "train", run.data)
    tokenizer = None if is_probe else find_tokenizer(run, source)
    model = build_model(run.start, task, tokenizer, run.seed, say)
    if tokenizer is not None:
        check_belongs(tokenizer, model.config)
    apply_tuning(model, run.tuning, has_new_head=task.head not in LANGUAGE_HEADS, seed=run.seed)
    streams = _make_streams(run, task, source, tokenizer, say)
    config = run.config
    # In the mechanism's own spelling, so that two ways to write a line are one run.
    config["start"]["mechanism"] = str(mechanism_of(model))
    dev = make_dev(run, task, tokenizer, say, source)
    tune = _make_tune(run, task, source, tokenizer, say) if run.figure_at == "best" else None
    for stream in streams:
        check_positions(model, stream.longest, "a row to train on")
    if dev is not None:
        check_positions(model, max(map(len, dev.features)), "a row to evaluate on")
    known = None
    if run.num_scored is not None:
        examples = task.examples(source)[: run.data.num_train][: run.num_scored]
        known = _make_examples(run, task, examples, tokenizer, "to score", str)
    return Job(model, task, streams, run, run.seed, dev, known, tokenizer, config, run.threads, run.title, tune)


def _check_task(run: RunSpec, task: Any) -> None:
    if hasattr(task, "max_len"):
        _check_length("task_settings.max_len", task.max_len)
    if run.data.is_packed and task.name not in LANGUAGE:
        raise TrainingError(f"packed rows train 'mlm' or 'clm', not '{task.name}'; leave data.is_packed out")
    has_counts = any(num is not None for num in (run.data.num_train, run.num_scored, run.data.num_tune))
    if getattr(task, "is_fresh", False) and has_counts:
        raise TrainingError(
            "data.num_train, data.num_tune and num_scored count training examples, and with task_settings.is_fresh "
            "every row is new; leave them out"
        )


def open_data(name: str, split: str, data: DataSource) -> Source:
    """Open a source as the data of a run reads it, at a split if it has splits."""
    if not name:
        raise TrainingError("a run needs a source to train on (data.train); only a probe generates its own")
    return open_source(name, split=choose_split(name, split), column=data.column, unit=data.unit)


def read_examples(task: Any, name: str, split: str, data: DataSource) -> list[Any]:
    """Read the examples of a source."""
    # Passed by name if possible, since a task may have its own name for a split, as MNLI has for two.
    is_by_name = data.column is None and data.unit == "line"
    examples: list[Any] = task.examples(name if is_by_name else open_data(name, split, data), choose_split(name, split))
    return examples


def choose_split(name: str, split: str) -> str | None:
    """Return the split to request from a source, None if it has no splits."""
    return split if name.startswith(("embedded:", "hf:")) or expand_path(name).is_dir() else None


def find_tokenizer(run: RunSpec, source: Source) -> Any:
    """Load the tokenizer of a run, or train it on the run's text."""
    name = run.data.tokenizer
    if name is None and run.start.checkpoint is not None:
        of_run = find_run_folder(run.start.checkpoint)
        return load_tokenizer(of_run[0] / TOKENIZER if of_run else run.start.checkpoint)
    if name is None:
        trained = ", ".join(TOKENIZER_KINDS)
        raise TrainingError(
            f"a new model needs a tokenizer (data.tokenizer): a directory, a file, or {trained} to train one"
        )
    kind, _, size = name.partition(":")
    if kind not in TOKENIZER_KINDS:
        return load_tokenizer(name)
    if size and not is_whole_number(size):
        raise TrainingError(f"a tokenizer's size is a whole number, as in '{kind}:4000', not '{size}'")
    return train_tokenizer(_choose_texts(run, source), kind, int(size) if size else None)


def _choose_texts(run: RunSpec, source: Source) -> Source | list[str]:
    """Return what a new tokenizer is trained on: the documents of the source, or the texts of a task of pairs."""
    task = load_task(run.task, **run.task_settings)
    texts: list[str] | None = None
    if run.data.column is None and hasattr(task, "list_texts"):
        texts = task.list_texts(source)
    return source if texts is None else texts


def _make_streams(run: RunSpec, task: Any, source: Source, tokenizer: Any, say: Say) -> list[Stream]:
    seeds = [int(keys_of(SEGMENT, run.seed, number) >> np.uint64(2)) for number in range(1, len(run.segments))]
    pairs = list(zip(run.segments, [run.seed, *seeds], strict=True))
    if run.data.is_packed:
        tokens = pack(source, tokenizer)
        layout: RowLayout = "crops" if run.data.has_random_starts else "packed"
        return [TokenStream(task, tokens, segment, seed, layout) for segment, seed in pairs]
    if getattr(task, "is_fresh", False):
        probe = task.get_generator(source)
        return [FreshStream(task, probe, segment, seed) for segment, seed in pairs]
    examples, _ = _hold_out_tuning_examples(run, task, source)
    features: dict[int | None, list[Feature]] = {}  # segments of one length share their features
    streams: list[Stream] = []
    for segment, seed in pairs:
        sized_task = _set_length(task, segment)
        if segment.length not in features:
            features[segment.length] = load_features(sized_task, examples, tokenizer)
            _select_examples(examples, features[segment.length], "to train on", say)
        streams.append(FeatureStream(sized_task, features[segment.length], segment, seed))
    return streams


def _hold_out_tuning_examples(run: RunSpec, task: Any, source: Source) -> tuple[list[Any], list[Any]]:
    """Return the examples to train on, and those at the end that a trial is evaluated on instead."""
    examples = task.examples(source)[: run.data.num_train]
    if run.data.num_tune is None:
        return examples, []
    if run.data.num_tune >= len(examples):
        raise TrainingError(
            f"data.num_tune = {run.data.num_tune} leaves none of the {len(examples)} training examples to train on"
        )
    return examples[: -run.data.num_tune], examples[-run.data.num_tune :]


def _check_length(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise TrainingError(f"{what} is a whole number of at least 2, not {value!r}")


def _set_length(task: Any, segment: Segment) -> Any:
    if segment.length is None:
        return task
    if not hasattr(task, "max_len"):
        raise TrainingError(f"the task '{task.name}' has no length to set; leave out that of segment '{segment.name}'")
    _check_length(f"length of segment '{segment.name}'", segment.length)
    return dataclasses.replace(task, max_len=segment.length)


def _select_examples(examples: Sequence[Any], features: Sequence[Feature], purpose: str, say: Say) -> list[Any]:
    """Return the examples that have features; say how many have none, since they leave nothing to predict."""
    keys = {feature.key for feature in features}
    selected = [example for example in examples if example.id in keys]
    if len(selected) < len(examples):
        first = next(example for example in examples if example.id not in keys)
        say(
            f"skipped {len(examples) - len(selected):,} of {len(examples):,} examples {purpose}: they leave nothing to "
            f"predict, such as {first.place}"
        )
    return selected


def make_dev(
    run: RunSpec, task: Any, tokenizer: Any, say: Say = str, trained: Source | None = None
) -> Examples | None:  # fmt: skip
    """Make what a run is evaluated on; None if it names nothing and its training source has no dev split.

    trained: the training source, of which a trial is evaluated on the end (data.num_tune).
    """
    if run.data.num_tune is not None and run.figure_at == "last" and trained is not None:
        held_out = _hold_out_tuning_examples(run, task, trained)[1]
        say(f"evaluates on the last {len(held_out):,} training examples and does not train on them (data.num_tune)")
        return _make_examples(run, task, held_out, tokenizer, "to evaluate on", say)
    name = run.data.dev
    if name is None:
        name = run.data.train or getattr(task, "source", "")
        if choose_split(name, "dev") is None:
            say(f"is not evaluated: it names no held-out data (data.dev), and {name} has no dev split")
            return None
    every = read_examples(task, name, "dev", run.data)
    examples = every[: run.data.num_dev]
    cut = f" (data.num_dev = {run.data.num_dev})" if len(examples) < len(every) else ""
    say(f"evaluates on {len(examples):,} of the {len(every):,} examples of {name}{cut}")
    return _make_examples(run, task, examples, tokenizer, "to evaluate on", say)


def _make_tune(run: RunSpec, task: Any, trained: Source, tokenizer: Any, say: Say) -> Examples:
    """Make what the best checkpoint is chosen on, which is neither trained on nor evaluated on."""
    if run.data.num_tune is not None:
        examples = _hold_out_tuning_examples(run, task, trained)[1]
        say(f"chooses its best checkpoint on the last {len(examples):,} training examples, which it does not train on")
    elif run.data.tune is not None:
        name = run.data.tune
        examples = read_examples(task, name, "dev", run.data)[: run.data.num_dev]
        say(f"chooses its best checkpoint on {len(examples):,} examples of {name}")
    else:
        raise TrainingError(
            'figure_at = "best" chooses a checkpoint, which needs examples that the figure is not measured on: give '
            "data.tune = SOURCE, or data.num_tune = N for the last N training examples"
        )
    return _make_examples(run, task, examples, tokenizer, "to choose a checkpoint on", say)


def _make_examples(run: RunSpec, task: Any, examples: list[Any], tokenizer: Any, purpose: str, say: Say) -> Examples:
    features = load_features(task, examples, tokenizer)
    batch = max(min(segment.micro_batch or segment.batch, segment.batch) for segment in run.segments)
    return Examples(_select_examples(examples, features, purpose, say), features, batch)
