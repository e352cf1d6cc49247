"""save_pretrained, from_pretrained and set_attn_implementation of transformers, for models with a mechanism.

Importing attnlab.install extends them, once. Models and folders without a mechanism are treated as before.
"""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from attnlab.errors import InstallError
from attnlab.mechanisms import Line

from .body import list_configs
from .bridges import choose_name
from .compat import (
    allow_falcon,
    allow_output_attentions,
    get_attention_name,
    hook_checkpoint_choice,
    hook_weight_loading,
    set_attention_name,
)
from .inspection import RECORD, attention_layers
from .installation import put
from .interface import NAME, NAME_WITH_POSITIONS, register
from .loading import FOR_TRANSFORMERS, check_line, parse_saved_line, read_config, set_state
from .saving import INDEX, NEEDS_ATTNLAB, WEIGHTS, list_plain_files, list_weight_files, remove_stale_files, save_instead


def extend_transformers() -> None:
    """Let transformers save, load and describe models with a mechanism."""
    register()
    allow_output_attentions({NAME, NAME_WITH_POSITIONS})
    hook_checkpoint_choice(_choose_file)
    hook_weight_loading(_restore)
    _extend("save_pretrained", save_instead, remove_stale_files)
    _extend("set_attn_implementation", _refuse_switch)


def _extend(name: str, replacement: Callable[..., Any], finish: Callable[..., None] | None = None) -> None:
    """Replace a method of every transformers model, for models with a mechanism; `finish` follows calls of others."""
    original = getattr(PreTrainedModel, name)

    @functools.wraps(original)
    def method(self: PreTrainedModel, *given: Any, **options: Any) -> Any:
        if next(attention_layers(self), None) is not None:
            return replacement(self, *given, **options)
        result = original(self, *given, **options)
        if finish is not None:
            finish(self, *given, **options)
        return result

    setattr(PreTrainedModel, name, method)


def _refuse_switch(model: PreTrainedModel, attn_implementation: object, *given: object, **more: object) -> None:
    """Replace set_attn_implementation, after which the mechanism would not be called."""
    asked = attn_implementation.values() if isinstance(attn_implementation, dict) else [attn_implementation]
    if {*asked} != {layer.attention_function for _, _, layer in attention_layers(model)}:
        raise InstallError(
            f"set_attn_implementation({attn_implementation!r}) would switch off the mechanism installed in this "
            f"{type(model).__name__}; call attnlab.uninstall(model) first"
        )


def _choose_file(model: str | os.PathLike[str] | None, subfolder: str, named: str | None) -> str | None:
    """Choose the weights file for from_pretrained: that of a mechanism, if config.json or the folder has one."""
    allow_falcon({NAME, NAME_WITH_POSITIONS})  # the class is imported by now, and no model is built yet
    if named is not None:
        return named.removesuffix(NEEDS_ATTNLAB)
    if model is not None and not list_plain_files(Path(model, subfolder)):
        for name in (WEIGHTS, INDEX):  # the config is from elsewhere
            if Path(model, subfolder, name).is_file():
                return name
    return None


def _restore(model: PreTrainedModel, files: list[str]) -> Callable[[set[str]], None] | None:
    """Install the mechanism of a folder in a model that from_pretrained has built, before it loads the weights."""
    folder = Path(files[0]).parent if files else Path()
    if not files or Path(files[0]) not in list_weight_files(folder):
        return None
    facts = read_config(folder)["attnlab"]
    mechanism = parse_saved_line(facts["mechanism"], folder)
    _check_type(model, folder)
    for file in files:
        check_line(Path(file), facts["mechanism"])
    _check_request(model, mechanism, folder)
    for config in list_configs(model):
        # What the model is given back when the mechanism is uninstalled.
        set_attention_name(config, model.get_correct_attn_implementation(None))
    put(model, mechanism, seed=0)
    set_state(model, facts)
    for config in list_configs(model):
        for name in FOR_TRANSFORMERS:
            vars(config).pop(name, None)
    ties = _list_ties(model)

    def finish(missing: set[str]) -> None:
        """Tie and freeze again what the mechanism does, since loading replaces parameters; refuse incomplete files."""
        for name, source in ties.items():
            path, _, attribute = name.rpartition(".")
            setattr(model.get_submodule(path), attribute, model.get_parameter(source))
            if source not in missing:
                missing.discard(name)
        for parts in vars(model)[RECORD].parts:
            parts.freeze()
        if lost := sorted(name for name in missing if ".attnlab." in name):
            raise InstallError(f"'{folder}' lacks {len(lost)} learned parameters of '{mechanism}': {lost[0]} …")

    return finish


def _check_type(model: PreTrainedModel, folder: Path) -> None:
    """Refuse a folder of another model type, whose weights transformers would leave out with a warning."""
    config = read_config(folder)
    saved, built = config.get("model_type"), getattr(model.config_class, "model_type", None)
    if saved is not None and built is not None and saved != built:
        names = " or ".join(config.get("architectures") or [saved])
        raise InstallError(
            f"'{folder}' holds a {names} with a mechanism, and {type(model).__name__} is another model; load it with "
            f"AutoModel… or attnlab.load"
        )


def _check_request(model: PreTrainedModel, mechanism: Line, folder: Path) -> None:
    """Refuse another attention than the mechanism's, if the config was read from the folder."""
    asked = get_attention_name(model.config)
    if hasattr(model.config, "attnlab") and asked != choose_name(mechanism, model):
        raise InstallError(
            f"'{folder}' holds '{mechanism}', and attn_implementation={asked!r} would not compute it; leave "
            "attn_implementation out, and call attnlab.uninstall(model) for the attention of transformers"
        )


def _list_ties(model: nn.Module) -> dict[str, str]:
    """Return the parameters that the mechanism ties, each with the name that its weights are saved under."""
    first: dict[int, str] = {}
    ties = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        source = first.setdefault(id(tensor), name)
        if source != name:
            ties[name] = source
    by_model = getattr(model, "all_tied_weights_keys", {})
    return {name: source for name, source in ties.items() if name not in by_model and source not in by_model}
