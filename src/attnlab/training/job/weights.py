"""A model to train: a new one of some architecture, or one with the weights of a checkpoint."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from transformers import AutoConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.utils import logging as transformers_logging

from attnlab.errors import PretrainedError, TrainingError, closest
from attnlab.inputs import expand_path
from attnlab.install import install, load, mechanism_of
from attnlab.install.key_heads import rescale_new_heads
from attnlab.install.saving import list_weight_files
from attnlab.pretrained import check_config, load_pretrained

from ..record.checkpoint import Checkpoint, read_checkpoint
from ..record.files import read_json
from ..record.folder import CONFIG, MODEL
from ..spec import RunSpec, Start, find_run_folder
from ..tuning.state import get_trained_state
from .start import initialise

LANGUAGE_HEADS = ("AutoModelForCausalLM", "AutoModelForMaskedLM")
Say = Callable[[str], Any]


def build_model(start: Start, task: Any, tokenizer: Any, seed: int, say: Say) -> PreTrainedModel:
    """Build the model of a run with the head its task needs, and install its mechanism."""
    if start.architecture is not None:
        model = _build_new(make_config(start.architecture, start, task, tokenizer), task, seed)
        install(model, start.mechanism, seed=seed)
        rescale_new_heads(model)
        return model
    path = str(start.checkpoint)
    if (of_run := find_run_folder(path)) is not None:
        return _load_run(*of_run, start, task, seed, say)
    folder = expand_path(path)
    if list_weight_files(folder):
        donor = load(folder, start.mechanism)
        state = {name: tensor.detach() for name, tensor in donor.state_dict().items()}
        return _transplant(state, donor.config, start, task, seed)
    return install(_load_pretrained(path, start, task, seed, say), start.mechanism, seed=seed)


def make_config(kind: str, start: Start, task: Any, tokenizer: Any) -> Any:
    """Make the config of an architecture for a tokenizer and a task."""
    known = list(CONFIG_MAPPING)
    if kind not in known:
        raise TrainingError(f"transformers has no architecture '{kind}'{closest(kind, known) or '.'}")
    vocabulary: dict[str, Any] = {}
    if tokenizer is not None:
        pad = tokenizer.pad_token_id
        vocabulary = {
            "vocab_size": len(tokenizer), "pad_token_id": tokenizer.eos_token_id if pad is None else pad,
            "bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id,
        }  # fmt: skip
    _check_settings(kind, start.config)
    with explain_config_errors():
        return AutoConfig.for_model(kind, **{**vocabulary, **task.head_settings, **start.config})


@contextmanager
def explain_config_errors() -> Iterator[None]:
    """Turn an error of transformers about a config into one sentence; its type depends on the setting."""
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError, StrictDataclassError) as error:
        first, *more = str(error).splitlines() or [""]
        reason = " ".join([first, *more[:1]] if first.endswith(":") else [first])
        raise TrainingError(f"no model can be built from this config ({type(error).__name__}: {reason})") from error


def _check_settings(kind: str, settings: Mapping[str, Any]) -> None:
    # A config accepts unknown settings and ignores them.
    plain = AutoConfig.for_model(kind)
    known = [*plain.to_dict(), *plain.attribute_map]
    for name in settings:
        if name not in known:
            raise TrainingError(f"the config of '{kind}' has no setting '{name}'{closest(name, known) or '.'}")


def _build_new(config: Any, task: Any, seed: int) -> PreTrainedModel:
    with explain_config_errors():
        check_config(config)
        model: PreTrainedModel = getattr(transformers, task.head).from_config(config)
    initialise(model, seed)
    return model


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Switch off the messages and progress bars of transformers."""
    verbosity, has_bar = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if has_bar:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _load_pretrained(path: str, start: Start, task: Any, seed: int, say: Say) -> PreTrainedModel:
    """Load a checkpoint of transformers; weights it lacks, such as a new head's, start from the seed."""
    model: PreTrainedModel
    with torch.random.fork_rng(devices=[]), silence_transformers():
        try:
            config = update_config(load_pretrained(AutoConfig, path), start, task)
            model, info = load_pretrained(
                getattr(transformers, task.head), path, config=config, output_loading_info=True,
                ignore_mismatched_sizes=True,
            )  # fmt: skip
        except PretrainedError as error:
            raise TrainingError(
                f"no model can be loaded from '{path}': {error}; give a directory with config.json and "
                "model.safetensors, or a name of the hub while online"
            ) from error
    for name, stored, needed in sorted(info["mismatched_keys"]):
        if name.startswith(f"{model.base_model_prefix}."):
            raise TrainingError(
                f"'{name}' is {list(stored)} in {path} and {list(needed)} in a model of this config; keep the sizes of "
                "the checkpoint"
            )
    resized = {name for name, *_ in info["mismatched_keys"]}
    missing, unused = sorted({*info["missing_keys"], *resized}), sorted(info["unexpected_keys"])
    initialise(model, seed, set(missing))
    model.float()  # type: ignore[no-untyped-call]
    if missing:
        say(f"{path} has no {', '.join(missing[:4])}{' …' * (len(missing) > 4)} of this size: started from the seed")
    if unused:
        say(f"{path} also has {', '.join(unused[:4])}{' …' * (len(unused) > 4)}, which this model does not use")
    return model


def update_config(config: Any, start: Start, task: Any) -> Any:
    """Return a checkpoint's config with the settings of a task's head and of a run."""
    _check_settings(config.model_type, start.config)
    with explain_config_errors():
        for name, value in {**task.head_settings, **start.config}.items():
            setattr(config, name, value)
    return config


def _load_run(folder: Path, is_best: bool, start: Start, task: Any, seed: int, say: Say) -> PreTrainedModel:
    other = RunSpec.of(read_json(folder / CONFIG))
    if other.tuning.mode != "full":
        raise TrainingError(
            f"the run in {folder} trained only a '{other.tuning.mode}'; start from the model that it started from"
        )
    checkpoint = read_checkpoint(folder, is_best, say)
    with explain_config_errors():
        config = AutoConfig.for_model(**read_json(folder / MODEL))
    return _transplant(checkpoint.model, config, start, task, seed, mechanism=other.start.mechanism)


def _transplant(
    state: Mapping[str, Tensor], config: Any, start: Start, task: Any, seed: int, mechanism: str | None = None
) -> PreTrainedModel:
    """Build a model with the task's head and another model's weights, including a head of the same kind."""
    model = install(_build_new(update_config(config, start, task), task, seed), start.mechanism, seed=seed)
    if mechanism is not None and str(mechanism_of(model)) != mechanism:
        raise TrainingError(
            f"the checkpoint was trained with '{mechanism}', not '{mechanism_of(model)}'; give its mechanism, or start "
            "from a run of this one"
        )
    needed = model.state_dict()
    common = {name: tensor for name, tensor in state.items() if name in needed and needed[name].shape == tensor.shape}
    for name in needed:
        is_optional = name.endswith("position_ids") or ".pooler." in name
        if name.startswith(f"{model.base_model_prefix}.") and name not in common and not is_optional:
            raise TrainingError(f"the checkpoint has no '{name}' of the same shape; it is of another body")
    model.load_state_dict(common, strict=False)
    return model


def load_weights(checkpoint: Checkpoint, model: PreTrainedModel) -> bool:
    """Copy a checkpoint's weights into what trains in a model; return False if names or shapes differ."""
    state = get_trained_state(model)
    if {name: tensor.shape for name, tensor in state.items()} != {n: t.shape for n, t in checkpoint.model.items()}:
        return False
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(checkpoint.model[name])
    return True
