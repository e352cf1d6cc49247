"""What the models of a study have no room for: rows, prompts and sentences longer than their positions. A run refuses
them when it is built; here they are found before the first run, from configs and tokenizers alone.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from transformers import AutoConfig

from attnlab.errors import PretrainedError, StudyError, TrainingError
from attnlab.pretrained import load_pretrained
from attnlab.tasks import load as load_task
from attnlab.training import RunSpec
from attnlab.training.job.build import find_tokenizer, open_data
from attnlab.training.job.samples import check_samples
from attnlab.training.job.weights import make_config
from attnlab.training.spec import Start

from .learning_budget import DEFAULT_LENGTHS
from .planning import PlannedRun

CAUSAL_HEAD = "AutoModelForCausalLM"


def check_model_limits(runs: Iterable[PlannedRun]) -> None:
    """Refuse runs whose rows, prompts or sentences do not fit into their model; each kind of run is checked once."""
    planned = {run.id: run for run in runs}
    checked = set[str]()
    for run in planned.values():
        origin = find_origin(run, planned)
        content = run.run.replace(seed=0, start=origin.run.start.replace(mechanism="dot | softmax"), title="")
        if (key := f"{run.phase} {run.size} {content.model_dump_json()}") in checked:
            continue
        checked.add(key)
        try:
            _check_run(run.run, origin.run)
        except TrainingError as error:
            raise StudyError(f"phase '{run.phase}', size '{run.size}': {error}") from error


def find_origin(run: PlannedRun, planned: Mapping[str, PlannedRun]) -> PlannedRun:
    """Return the run whose model and tokenizer a run goes on with, itself if it begins anew."""
    while run.parent is not None and run.parent in planned:
        run = planned[run.parent]
    return run


def _check_run(run: RunSpec, origin: RunSpec) -> None:
    task = load_task(run.task, **run.task_settings)
    num_positions = count_stated_positions(origin.start, task)
    if num_positions is not None and run.tuning.mode == "prompt":
        num_positions -= run.tuning.length
    if run.data.is_packed and num_positions is not None:
        default = int(run.task_settings.get("max_len", DEFAULT_LENGTHS.get(task.name, 0)))
        length = max(segment.length or default for segment in run.segments)
        if length > num_positions:
            raise TrainingError(
                f"a packed row has {length} tokens, and the model has positions for {num_positions}; set "
                f"task_settings.max_len = {num_positions} or less (or a segment's length), or build a model with more "
                "positions"
            )
    if run.sample_every is None:
        return
    if task.head != CAUSAL_HEAD or hasattr(task, "source"):
        raise TrainingError(
            f"samples need a causal model with a tokenizer, which a run of '{task.name}' does not have; leave "
            "sample_every out"
        )
    source = open_data(origin.data.train, "train", origin.data)
    check_samples(run, find_tokenizer(origin, source), num_positions, task)


def count_stated_positions(start: Start, task: Any) -> int | None:
    """Return how many positions a config states; None if it states none, or is not on this machine."""
    if start.architecture is not None:
        config: Any = make_config(start.architecture, start, task, None)
    else:
        try:
            config = load_pretrained(AutoConfig, str(start.checkpoint), local_files_only=True)
        except PretrainedError:  # the run downloads it, or says what is wrong with it
            return None
    stated = getattr(config, "max_position_embeddings", None)
    return stated if isinstance(stated, int) and stated > 0 else None
