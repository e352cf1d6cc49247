"""Private names of torch and transformers that install and audits use, each with its reason.

tests/install/test_compat.py fails if one of them is gone or has changed its meaning.
"""

import functools
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, modeling_utils
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer, StaticLayer, StaticSlidingWindowLayer
from transformers.utils import output_capturing

from attnlab.errors import InstallError

ATTENTION_REGISTRY = "ALL_ATTENTION_FUNCTIONS"
"""The global of transformers' modeling files in which an attention module looks up the function it calls.

A module whose forward uses it goes through the AttentionInterface; there is no public way to find out.
"""


def get_attention_name(config: PreTrainedConfig) -> str | None:
    """Return the name of the attention function that modules of this config call; there is no public attribute."""
    name: str | None = config._attn_implementation
    return name


def set_attention_name(config: PreTrainedConfig, name: str | None) -> None:
    """Set that name; the public `set_attn_implementation` of a model checks it against kernels that it knows."""
    config._attn_implementation = name


def is_compiled(module: nn.Module) -> bool:
    """Tell whether torch.compile has wrapped a module, or compiled it in place; torch has no public test."""
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


def original_module(module: nn.Module) -> nn.Module:
    """Return the module that torch.compile has wrapped, or the module itself."""
    inner: nn.Module = getattr(module, "_orig_mod", module)
    return inner


def records_attentions() -> bool:
    """Tell whether transformers is recording attention weights for `output_attentions=True`."""
    collector: Any = output_capturing._active_collector
    # torch.compile cannot trace the context variable; transformers has a plain variable for that.
    recorded = collector.global_var if torch.compiler.is_compiling() else collector.get()
    return recorded is not None and any("attentions" in name for name in recorded)


def self_attention_cache(cache: Any) -> Any:
    """Return the part of a cache that self-attention uses: an encoder-decoder model has one for each attention."""
    return getattr(cache, "self_attention_cache", cache)


def make_cache_layer(like: Any) -> Any:
    """Return an empty layer of a cache that holds as many tokens as another one; layers have no public copy."""
    kind = getattr(like, "counts_as", type(like))
    if kind is DynamicLayer:
        return DynamicLayer()  # type: ignore[no-untyped-call]
    if kind is DynamicSlidingWindowLayer:
        return DynamicSlidingWindowLayer(sliding_window=like.sliding_window)
    if kind is StaticLayer:
        return StaticLayer(max_cache_len=like.max_cache_len)
    if kind is StaticSlidingWindowLayer:
        return StaticSlidingWindowLayer(max_cache_len=like.max_cache_len, sliding_window=like.max_cache_len)
    raise InstallError(
        f"a mechanism that needs the layer's input keeps it in the cache, and cannot in a {kind.__name__}; use a "
        "dynamic or a static cache"
    )


def supports_static_cache(model: nn.Module) -> bool:
    """Tell whether a model can be compiled whole, which transformers requires for a static cache in `generate`."""
    return bool(getattr(model, "_can_compile_fullgraph", False))


def hook_checkpoint_choice(choose: Callable[[Any, str, str | None], str | None]) -> None:
    """Let a function choose the weights file that `from_pretrained` reads.

    It gets the model's name or path, the subfolder and the file that config.json names (`transformers_weights`), and
    returns the file to read, or None for the usual ones. There is no public way to read another file.
    """
    original: Any = modeling_utils._get_resolved_checkpoint_files

    @functools.wraps(original)
    def resolve(pretrained_model_name_or_path: Any, *given: Any, **options: Any) -> Any:
        subfolder = (options.get("download_kwargs") or {}).get("subfolder", "")
        named = options.get("transformers_explicit_filename")
        options["transformers_explicit_filename"] = choose(pretrained_model_name_or_path, subfolder, named)
        return original(pretrained_model_name_or_path, *given, **options)

    modeling_utils._get_resolved_checkpoint_files = resolve


def allow_falcon(names: Collection[str]) -> None:
    """Let Falcon be built from a config with these attention functions.

    It chooses the class of its attention modules by that name, from a table of its modeling file. Nothing happens as
    long as that file is not imported.
    """
    file: Any = sys.modules.get("transformers.models.falcon.modeling_falcon")
    for name in () if file is None else names:
        file.FALCON_ATTENTION_CLASSES.setdefault(name, file.FalconAttention)


def hook_weight_loading(prepare: Callable[[PreTrainedModel, list[str]], Callable[[set[str]], None] | None]) -> None:
    """Let a function change a model that `from_pretrained` has built, before the weights of some files are loaded.

    What it returns is called after that with the names of the weights that were not in the files. Subclasses of a
    model can be built in many ways, and `from_pretrained` has no public step between building and loading.
    """
    original: Any = PreTrainedModel._load_pretrained_model

    @functools.wraps(original)
    def load(
        model: PreTrainedModel, state_dict: Any, checkpoint_files: list[str] | None, *given: Any, **options: Any
    ) -> Any:
        finish = prepare(model, checkpoint_files or [])
        info, offloaded = original(model, state_dict, checkpoint_files, *given, **options)
        if finish is not None:
            finish(info.missing_keys)
        return info, offloaded

    PreTrainedModel._load_pretrained_model = staticmethod(load)  # type: ignore[method-assign]


def hook_checkpoint_loading(trainer: Any, load: Callable[[Any, str], bool]) -> None:
    """Let a function load the checkpoints of transformers' Trainer; if it returns False, Trainer loads them itself.

    It gets the Trainer and the folder, when training is resumed and when the best model is loaded at the end. Trainer
    has no public step for either.
    """
    resume, load_best = trainer._load_from_checkpoint, trainer._load_best_model

    @functools.wraps(resume)
    def load_from_checkpoint(self: Any, resume_from_checkpoint: str, *given: Any, **options: Any) -> None:
        if not load(self, resume_from_checkpoint):
            resume(self, resume_from_checkpoint, *given, **options)

    @functools.wraps(load_best)
    def load_best_model(self: Any) -> None:
        if not load(self, self.state.best_model_checkpoint):
            load_best(self)

    trainer._load_from_checkpoint, trainer._load_best_model = load_from_checkpoint, load_best_model


def allow_output_attentions(names: Collection[str]) -> None:
    """Let a config have `output_attentions=True` with these attention functions; transformers allows "eager" only."""
    setting: Any = PreTrainedConfig.output_attentions
    original: Any = PreTrainedConfig.validate_output_attentions

    def set_output_attentions(config: PreTrainedConfig, value: bool) -> None:
        if get_attention_name(config) in names:
            config._output_attentions = value
        else:
            setting.fset(config, value)

    @functools.wraps(original)
    def validate(self: PreTrainedConfig) -> None:
        if get_attention_name(self) not in names:
            original(self)

    PreTrainedConfig.output_attentions = setting.setter(set_output_attentions)  # type: ignore[method-assign]
    PreTrainedConfig.validate_output_attentions = validate  # type: ignore[method-assign]
    # A config class that exists already holds its validators in a list.
    for config_class in _list_subclasses(PreTrainedConfig):
        validators: list[Any] = vars(config_class).get("__class_validators__", [])
        validators[:] = [validate if validator is original else validator for validator in validators]


def _list_subclasses(parent: type[object]) -> Iterator[type[object]]:
    yield parent
    for child in parent.__subclasses__():
        yield from _list_subclasses(child)
