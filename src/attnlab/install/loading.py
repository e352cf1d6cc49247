"""Load a model that `attnlab.save` wrote: the same architecture, mechanism and weights, or an error."""

import json
import os
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from attnlab.checksums import DamageError, hash_file, verify_sums
from attnlab.errors import InstallError, MechanismError, PretrainedError, remove_suggestion
from attnlab.inputs import is_whole_number, parse_json, suggest_file
from attnlab.mechanisms import Line, parse_line
from attnlab.pretrained import check_config, load_pretrained

from .inspection import mechanism_of, set_progress
from .installation import install
from .prefix import set_prefix
from .saving import CONFIG, GENERATION, INDEX, VERSION, WEIGHTS, list_tensors, read_path

FOR_TRANSFORMERS = ("attnlab", "attn_implementation", "transformers_weights")
"""The settings that `save` adds to config.json, which the config of a loaded model does not have."""


def load(
    path: str | os.PathLike[str],
    mechanism: str | Line | None = None,
    *,
    model_class: type[PreTrainedModel] | None = None,
) -> PreTrainedModel:
    """Load a model with its mechanism from a directory that `attnlab.save` wrote, in eval mode.

    mechanism: the expected mechanism; a different one is refused.
    model_class: the class to build, if it is not one of transformers; code is never loaded from a directory.
    """
    folder = read_path(path)
    config = read_config(folder)
    facts = config.pop("attnlab")
    saved = parse_saved_line(facts["mechanism"], folder)
    check_loaded_mechanism(saved, mechanism, folder)
    tensors, config_hash = _read_weights(folder, str(saved))
    # Building a model draws initial weights, which must not change the caller's random state.
    with torch.random.fork_rng(devices=[]):
        model = _build(config, model_class, folder)
    install(model, saved)
    set_state(model, facts)
    for name, tensor in _match(model, tensors, folder).items():
        # Only the data is replaced, so that tied parameters stay tied and keep the dtype they were saved in.
        tensor.data = tensors[name]
    if config_hash not in (None, hash_file(folder / CONFIG)):  # of older versions, which wrote no SHA256SUMS
        raise InstallError(
            f"'{folder / CONFIG}' is not the one its weights were saved with: it was changed, or belongs to others"
        )
    if (folder / GENERATION).exists() and model.can_generate():
        try:
            model.generation_config = load_pretrained(GenerationConfig, folder)
        except PretrainedError as error:
            raise InstallError(f"'{folder / GENERATION}' is not readable: {error}") from error
    model.name_or_path = str(folder)  # as from_pretrained does: where its tokenizer may be
    model.eval()  # type: ignore[no-untyped-call]
    return model


def parse_saved_line(line: str, folder: Path) -> Line:
    """Parse the line of a saved model or a run; say how to define a stage that is not known."""
    try:
        return parse_line(line)
    except MechanismError as error:
        files = sorted(path for path in folder.glob("*.py"))
        how = f", such as runpy.run_path('{files[0]}')" if files else ""
        raise MechanismError(
            f"'{folder}' holds '{line}', which cannot be read; if its stages are your own, import the file that "
            f"defines them first{how} (on the command line: --plugin {files[0] if files else 'FILE'}): "
            f"{remove_suggestion(str(error))}"
        ) from error


def check_loaded_mechanism(mechanism: Line | None, expected: str | Line | None, folder: Path) -> None:
    """Refuse the mechanism of a folder if another one was expected; None expects nothing."""
    if expected is not None and parse_line(expected) != mechanism:
        raise InstallError(f"'{folder}' holds '{mechanism}', not '{parse_line(expected)}'")


def load_weights(model: PreTrainedModel, path: str | os.PathLike[str]) -> None:
    """Load the weights of a directory into a model that has the same mechanism; its parameters stay in place."""
    folder = read_path(path)
    facts = read_config(folder)["attnlab"]
    saved, installed = parse_saved_line(facts["mechanism"], folder), mechanism_of(model)
    if installed != saved:
        has = "has no mechanism" if installed is None else f"has '{installed}'"
        raise InstallError(
            f"'{folder}' holds a model with '{saved}', and this {type(model).__name__} {has}; call "
            f"attnlab.install(model, '{saved}') first"
        )
    tensors, _ = _read_weights(folder, str(saved))
    with torch.no_grad():
        for name, tensor in _match(model, tensors, folder).items():
            tensor.copy_(tensors[name])
    if facts.get("progress") is not None:
        set_progress(model, facts["progress"])


def set_state(model: PreTrainedModel, facts: dict[str, Any]) -> None:
    """Give a model the prefix and the progress that its config.json records besides the mechanism."""
    if facts.get("prefix") is not None:
        set_prefix(model, facts["prefix"])
    if facts.get("progress") is not None:
        set_progress(model, facts["progress"])


def read_config(folder: Path) -> dict[str, Any]:
    """Read the config.json that `save` wrote, with the mechanism under "attnlab"; refuse others and damaged files."""
    if not (folder / CONFIG).is_file():
        raise InstallError(_describe_missing_folder(folder))
    try:
        verify_sums(folder)
    except DamageError as error:
        raise InstallError(str(error)) from error
    try:
        config = parse_json((folder / CONFIG).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InstallError(f"'{folder / CONFIG}' is not readable: {error}") from error
    facts = config.get("attnlab") if isinstance(config, dict) else None
    if not isinstance(facts, dict) or not isinstance(facts.get("mechanism"), str):
        raise InstallError(
            f"'{folder / CONFIG}' names no mechanism: this is not a directory of attnlab.save. Load it with "
            "from_pretrained, then attnlab.install"
        )
    if facts.get("version") not in (1, VERSION):
        raise InstallError(f"'{folder}' was saved in format {facts.get('version')}; this attnlab reads {VERSION}")
    if "auto_map" in config:
        raise InstallError(f"'{folder / CONFIG}' asks for code of its own (auto_map), which attnlab never runs")
    return config  # type: ignore[no-any-return]


def _describe_missing_folder(folder: Path) -> str:
    """Return why a folder without config.json cannot be loaded; name the newest checkpoint if Trainer wrote some."""
    if not folder.exists():
        return f"there is no folder '{folder}'{suggest_file(folder)}"
    if newest := find_newest_checkpoint(folder):
        return f"'{folder}' has no {CONFIG}, but checkpoints of Trainer; load the newest: '{newest}'"
    return f"'{folder}' has no {CONFIG}; attnlab.load reads what attnlab.save wrote"


def find_newest_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint that Trainer wrote into a folder, if any."""
    names = (path.parent.name for path in folder.glob(f"checkpoint-*/{CONFIG}"))
    steps = [int(step) for name in names if is_whole_number(step := name.removeprefix("checkpoint-"))]
    return folder / f"checkpoint-{max(steps)}" if steps else None


def _read_weights(folder: Path, line: str) -> tuple[dict[str, Tensor], str | None]:
    """Read the weights and the hash of their config; refuse weights of another mechanism."""
    tensors: dict[str, Tensor] = {}
    hashes: set[str | None] = set()
    for path in _list_files(folder):
        check_line(path, line)
        with safe_open(path, framework="pt") as file:
            hashes.add((file.metadata() or {}).get("config"))
            tensors |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return tensors, hashes.pop() if len(hashes) == 1 else None


def _list_files(folder: Path) -> list[Path]:
    """List the files of a folder's weights: one, or those of the index."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise InstallError(f"'{folder}' has no {WEIGHTS}")
    try:
        names = set(parse_json((folder / INDEX).read_text(encoding="utf-8"))["weight_map"].values())
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InstallError(f"'{folder / INDEX}' is not readable: {error!r}") from error
    return [folder / Path(str(name)).name for name in sorted(names)]


def check_line(path: Path, line: str) -> None:
    """Refuse a file of weights that was saved with another mechanism than its config.json says."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise InstallError(f"'{path}' is not readable: {error}") from error
    if metadata.get("attnlab") != line:
        raise InstallError(f"'{path}' was trained with '{metadata.get('attnlab')}', but {CONFIG} says '{line}'")


def _build(config: dict[str, Any], model_class: type[PreTrainedModel] | None, folder: Path) -> PreTrainedModel:
    """Build the model a config describes, before its weights are read."""
    kind = str(config.get("model_type", "")).removeprefix("attnlab-")  # as format 1 has it
    config = {name: value for name, value in config.items() if name not in FOR_TRANSFORMERS}
    architectures = config.get("architectures")
    name = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    cls = getattr(transformers, name, None) if model_class is None else model_class
    if not (isinstance(cls, type) and issubclass(cls, PreTrainedModel)):
        raise InstallError(f"transformers has no model class '{name}', which '{folder}' names; give model_class=")
    config_class = cls.config_class
    if config_class is None or getattr(config_class, "model_type", kind) != kind:
        config_class = CONFIG_MAPPING[kind] if kind in CONFIG_MAPPING else None  # noqa: SIM401  (lazy: no `get`)
    if config_class is None or (cls.config_class is not None and not issubclass(config_class, cls.config_class)):
        raise InstallError(f"'{folder}' is of model type '{kind}', which {cls.__name__} is not")
    try:
        described = config_class.from_dict({**config, "model_type": kind})
        check_config(described)
        return cls(described)
    except Exception as error:
        # transformers raises errors of many kinds for a config with wrong values.
        raise InstallError(f"'{folder / CONFIG}' describes no {cls.__name__}: {error}") from error


def _match(model: PreTrainedModel, tensors: dict[str, Tensor], folder: Path) -> dict[str, Tensor]:
    """Return the tensors of a model by name; refuse saved ones with other names or sizes."""
    current = list_tensors(model)
    for what, names in (
        (f"'{folder / WEIGHTS}' lacks", current.keys() - tensors.keys()),
        ("the model has no place for", tensors.keys() - current.keys()),
    ):
        if names:
            shown = ", ".join(sorted(names)[:3]) + (" …" if len(names) > 3 else "")
            raise InstallError(f"{what} {len(names)} weights: {shown}")
    for name, tensor in current.items():
        if tensor.shape != tensors[name].shape:
            raise InstallError(
                f"'{name}' is {tuple(tensors[name].shape)} in '{folder / WEIGHTS}' and {tuple(tensor.shape)} in the "
                "model its config describes"
            )
    return current
