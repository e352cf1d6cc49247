"""Save a model with its mechanism: weights as safetensors, the mechanism's line in the config, nothing else.

Plain transformers refuses the directory, since it would build the model without its mechanism.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.errors import InstallError, RequestError

from .body import find_body
from .inspection import find_own_layer
from .prefix import prefix_of

CONFIG = "config.json"
WEIGHTS = "attnlab.safetensors"
"""Not model.safetensors, which from_pretrained would read into a model without the mechanism."""
VERSION = 1
PREFIX = "attnlab-"
"""Put before the model type in config.json, so that AutoConfig names attnlab in its error."""
UNSAVED = "_attnlab_unsaved"
"""An attribute of a model that describes additions which its config and mechanism do not."""


def save(model: nn.Module, path: str | os.PathLike[str]) -> None:
    """Save a model and its mechanism in a directory, for `attnlab.load`."""
    body = find_body(model)
    if body is not model and hasattr(model, "peft_config"):
        raise InstallError(
            "this model has peft adapters, which attnlab.save does not write; merge them first (merge_and_unload), or "
            "save them with the peft model, whose adapters need the same mechanism installed below them"
        )
    _write(body, read_path(path), None)


def _write(body: PreTrainedModel, path: Path, state: dict[str, Tensor] | None) -> None:
    """Write config and weights; `state` replaces the model's weights, if someone has gathered them."""
    layer = find_own_layer(body, "save that one, since only it knows the whole mechanism")
    if UNSAVED in vars(body):
        raise InstallError(
            f"this {type(body).__name__} holds {vars(body)[UNSAVED]}, which attnlab.load would not "
            "build; save the trained parameters (attnlab.training.tuning.state.get_trained_state)"
        )
    _make_folder(path)
    line = str(layer.mechanism)
    config = body.config.to_dict()
    config["architectures"] = [type(body).__name__]
    config["dtype"] = str(body.dtype).removeprefix("torch.")
    config["model_type"] = f"{PREFIX}{config['model_type']}"
    config["attnlab"] = {"mechanism": line, "version": VERSION, "progress": layer.progress, "prefix": prefix_of(body)}
    text = json.dumps(config, indent=2, sort_keys=True) + "\n"
    (path / CONFIG).write_text(text, encoding="utf-8")
    if body.can_generate() and body.generation_config is not None:
        body.generation_config.save_pretrained(path)
    state = body.state_dict() if state is None else state
    names = list_tensors(body)
    if missing := sorted(names.keys() - state.keys()):
        raise InstallError(f"the state_dict to be saved lacks {len(missing)} of the model's weights: {missing[0]} …")
    tensors = {name: state[name].contiguous() for name in names}
    save_file(tensors, path / WEIGHTS, metadata={"format": "pt", "attnlab": line, "config": hash_config(text)})


def hash_config(config: str) -> str:
    """Return the hash of a config that is saved with the weights."""
    return hashlib.sha256(config.encode()).hexdigest()


def _make_folder(path: Path) -> None:
    """Make the directory; refuse one with plain weights, which a loader would read instead of this model's."""
    if path.exists() and not path.is_dir():
        raise RequestError(f"'{path}' is a file; a directory is needed to save a model in")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot save a model in '{path}': {error.strerror}") from error
    plain = [file.name for pattern in ("model*.safetensors*", "pytorch_model*") for file in path.glob(pattern)]
    if plain:
        raise RequestError(
            f"'{path}' holds {plain[0]}, which from_pretrained would load without the mechanism; save elsewhere"
        )


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
    state_dict: dict[str, Tensor] | None = None, push_to_hub: bool = False, **rest: Any,
) -> None:  # fmt: skip
    """Replace a model's save_pretrained, so that Trainer and others save the mechanism too."""
    if push_to_hub or rest.get("variant"):
        raise InstallError(
            "a model with a mechanism is saved by attnlab.save, without push_to_hub and variant; "
            "attnlab.uninstall(model) restores the model that from_pretrained can read"
        )
    if is_main_process:
        with torch.no_grad():
            _write(model, read_path(save_directory), state_dict)
