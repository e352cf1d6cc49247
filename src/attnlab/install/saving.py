"""Save a model with its mechanism: weights as safetensors, the mechanism's line in the config, nothing else.

transformers reads the directory once attnlab is imported (`pretrained.py`), and refuses it otherwise, since it would
build the model without its mechanism.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.checksums import SUMS, write_sums
from attnlab.errors import InstallError, RequestError
from attnlab.ownership import describe_risk

from .attention_modules import find_attention_modules
from .body import find_body
from .inspection import attention_layers, first_layer, mechanism_of
from .layer import Layer
from .pass_context import get_pass_context
from .prefix import prefix_of

CONFIG, GENERATION = "config.json", "generation_config.json"
WEIGHTS = "attnlab.safetensors"
"""Not model.safetensors, which from_pretrained would read into a model without the mechanism."""
INDEX = "attnlab.safetensors.index.json"
"""Lists the weights of each file, if they are saved in several."""
VERSION = 2
NEEDS_ATTNLAB = (
    ", with an attention mechanism that transformers cannot compute by itself; to load the model, install attnlab and "
    "run `import attnlab` before from_pretrained"
)
"""Follows the name of the weights file in config.json, which transformers checks first, and quotes in its error."""
UNSAVED = "_attnlab_unsaved"
"""An attribute of a model that describes additions which its config and mechanism do not."""


def save(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Save a model and its mechanism in a directory, for `attnlab.load`."""
    body = find_body(model)
    if body is not model and hasattr(model, "peft_config"):
        raise InstallError(
            "this model has peft adapters, which attnlab.save does not write; merge them first (merge_and_unload), or "
            "save them with save_pretrained of the peft model, which names the mechanism"
        )
    _write(body, read_path(path), None)


def _write(
    body: PreTrainedModel, path: Path, state: dict[str, Tensor] | None, max_shard_size: int | str = "50GB"
) -> None:
    """Write config and weights; `state` replaces the model's weights, if someone has gathered them."""
    layer = _check_whole(body)
    for _, attention, _ in attention_layers(body):
        get_pass_context(attention).check_vocabulary(body)
    if UNSAVED in vars(body):
        raise InstallError(
            f"this {type(body).__name__} holds {vars(body)[UNSAVED]}, which attnlab.load would not "
            "build; save the trained parameters (attnlab.training.tuning.state.get_trained_state)"
        )
    _make_folder(path)
    state = body.state_dict() if state is None else state
    names = list_tensors(body)
    if missing := sorted(names.keys() - state.keys()):
        raise InstallError(f"the state_dict to be saved lacks {len(missing)} of the model's weights: {missing[0]} …")
    tensors = {name: state[name].contiguous() for name in names}
    shards = split_torch_state_dict_into_shards(
        tensors, filename_pattern="attnlab{suffix}.safetensors", max_shard_size=max_shard_size
    )
    line = str(layer.line)
    config = body.config.to_dict()
    config["architectures"] = [type(body).__name__]
    config["dtype"] = str(body.dtype).removeprefix("torch.")
    config["attn_implementation"] = layer.attention_function
    config["transformers_weights"] = (INDEX if shards.is_sharded else WEIGHTS) + NEEDS_ATTNLAB
    config["attnlab"] = {"mechanism": line, "version": VERSION, "progress": layer.progress, "prefix": prefix_of(body)}
    text = json.dumps(config, indent=2, sort_keys=True) + "\n"
    for file in list_weight_files(path):
        file.unlink()
    (path / CONFIG).write_text(text, encoding="utf-8")
    if body.can_generate() and body.generation_config is not None:
        body.generation_config.save_pretrained(path)
    metadata = {"format": "pt", "attnlab": line}
    for file_name, contents in shards.filename_to_tensors.items():
        _write_tensors({name: tensors[name] for name in contents}, path / file_name, metadata)
    if shards.is_sharded:
        index = {"metadata": shards.metadata, "weight_map": shards.tensor_to_filename}
        (path / INDEX).write_text(json.dumps(index, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    others = [name for name in (CONFIG, GENERATION) if (path / name).exists()]
    write_sums(path, [*others, *(file.name for file in list_weight_files(path))])


def _write_tensors(tensors: dict[str, Tensor], file: Path, metadata: dict[str, str]) -> None:
    """Write a file of safetensors, whose errors of the disk are a class of their own with the number in their text."""
    try:
        save_file(tensors, file, metadata=metadata)
    except SafetensorError as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(file)) from error


def _check_whole(body: PreTrainedModel) -> Layer:
    """Return the first layer of a model; refuse a model that installing its mechanism would not build again."""
    layer = first_layer(body)
    mechanism_of(body)  # refuses several mechanisms, and one that is not in use
    layers = {id(module): layer for _, module, layer in attention_layers(body)}
    for attention in find_attention_modules(body):
        if id(attention.module) not in layers:
            raise InstallError(
                f"'{layer.line}' is installed in a part of this {type(body).__name__}, and '{attention.name}' has "
                "no mechanism; save that part, or install in the whole model"
            )
    inside = {id(layer) for layer in layers.values()}
    for each in layers.values():
        for name, (owner,) in each.owners.items():
            if id(owner) not in inside:
                raise InstallError(
                    f"'{name}' of '{each.attention_name}' is shared with a layer outside this {type(body).__name__}; "
                    "save the model in which the mechanism was installed"
                )
    return layer


def list_weight_files(folder: Path) -> list[Path]:
    """List the files with weights that `save` has written into a directory."""
    return [*folder.glob("attnlab.safetensors*"), *folder.glob("attnlab-*-of-*.safetensors")]


def list_plain_files(folder: Path) -> list[Path]:
    """List the files with weights that transformers has written into a directory."""
    return [*folder.glob("model*.safetensors*"), *folder.glob("pytorch_model*")]


def _make_folder(path: Path) -> None:
    """Make the directory; refuse one with plain weights, which a loader would read instead of this model's."""
    if path.exists() and not path.is_dir():
        raise RequestError(f"'{path}' is a file; a directory is needed to save a model in")
    if risk := describe_risk(path):
        raise RequestError(risk)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot save a model in '{path}': {error.strerror}") from error
    if plain := list_plain_files(path):
        raise RequestError(
            f"'{path}' holds {plain[0].name}, which from_pretrained would load without the mechanism; save elsewhere"
        )


def remove_stale_files(
    model: PreTrainedModel, save_directory: str | os.PathLike[str], *given: Any, **rest: Any
) -> None:
    """Remove the weights of a mechanism, and their hashes, from a folder that plain weights have been saved into."""
    folder = Path(save_directory)
    if (files := list_weight_files(folder)) and list_plain_files(folder):
        for file in (*files, folder / SUMS):
            file.unlink(missing_ok=True)


def read_path(path: object) -> Path:
    """Return the path of a directory; refuse other types."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise RequestError(f"the path of a directory is needed, not {path!r}")
    return Path(path)


def list_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a model's state_dict, each under the first of its names only."""
    tensors: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        tensors.setdefault(id(tensor), (name, tensor))
    return dict(tensors.values())


def save_instead(
    model: PreTrainedModel, save_directory: str | os.PathLike[str], is_main_process: bool = True,
    state_dict: dict[str, Tensor] | None = None, push_to_hub: bool = False, max_shard_size: int | str = "50GB",
    variant: str | None = None, **rest: Any,
) -> None:  # fmt: skip
    """Replace save_pretrained of a model with a mechanism, so that Trainer and others save the mechanism too."""
    if push_to_hub or variant:
        raise InstallError(
            "a model with a mechanism is saved without push_to_hub and variant; save it in a folder, and upload that "
            "(hf upload)"
        )
    if is_main_process:
        with torch.no_grad():
            _write(model, read_path(save_directory), state_dict, max_shard_size)
