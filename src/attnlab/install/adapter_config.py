"""A saved peft adapter names the mechanism that its base had, and is refused by a base with another one or none.

Importing this module extends peft, once. Without attnlab, peft's error for the unknown `peft_type` quotes the sentence
that stands there. Adapters of models without a mechanism are saved as before, and a base with a mechanism takes one
with a warning: that an adapter names no mechanism does not prove that its base had none.
"""

import functools
import json
import warnings
from pathlib import Path
from typing import Any

from peft import PeftConfig, PeftModel
from peft.config import PeftConfigMixin
from peft.tuners.tuners_utils import BaseTuner, BaseTunerLayer
from peft.utils import CONFIG_NAME, SAFETENSORS_WEIGHTS_NAME
from safetensors.torch import load_file, save_file
from torch import nn

from attnlab.errors import AttnlabWarning, InstallError
from attnlab.inputs import parse_json
from attnlab.mechanisms import Line, Mechanism, parse_line

from .inspection import attention_layers, mechanism_of

KEY = "attnlab"
"""The key of the mechanism in adapter_config.json, and in the `auto_mapping` of a config in memory."""
NEEDS_ATTNLAB = (
    "{}: this adapter was trained on a model with the attention mechanism '{}'; install attnlab, `import attnlab`, and "
    "install that mechanism in the base model before loading the adapter"
)
IS_OWN = "attnlab_is_own"
"""The attribute of a config of attnlab's own training, which says itself what trains."""
IS_SAVED = "attnlab_is_saved"
"""The attribute of a config that was read from a folder; a new adapter has none, and fits every base."""
IS_WARNED = "attnlab_is_warned"
"""The attribute of a config for which the warning was given when its adapter was put into the base."""
BASELINE = Mechanism.parse("dot | softmax")
"""Computes what a model without a mechanism does."""
HUB_OPTIONS = ("subfolder", "revision", "cache_dir", "token")


def extend_peft() -> None:
    """Let peft save, load and check the mechanism of an adapter's base."""
    save, load, inject, read = (
        PeftModel.save_pretrained, PeftModel.load_adapter, BaseTuner.inject_adapter, PeftConfigMixin.from_json_file,
    )  # fmt: skip
    read_config = PeftConfigMixin.from_pretrained.__func__  # type: ignore[attr-defined]

    @functools.wraps(save)
    def save_pretrained(self: PeftModel, save_directory: str, *given: Any, **options: Any) -> None:
        save(self, save_directory, *given, **options)
        mechanism = mechanism_of(self)
        if mechanism is not None and options.get("is_main_process", True):
            for adapter in options.get("selected_adapters") or self.peft_config:
                _add_mechanism(self, Path(save_directory, "" if adapter == "default" else adapter), mechanism)

    @functools.wraps(load)
    def load_adapter(self: PeftModel, model_id: Any, adapter_name: str, *given: Any, **options: Any) -> Any:
        hub = {name: options[name] for name in HUB_OPTIONS if options.get(name) is not None}
        config = PeftConfig.from_pretrained(str(model_id), **hub)
        _check_base(self, config)
        loaded = load(self, model_id, adapter_name, *given, **options)
        if not hasattr(self.peft_config[adapter_name], IS_WARNED):
            _warn_of_missing_mechanism(self, config)
        return loaded

    @functools.wraps(inject)
    def inject_adapter(self: BaseTuner, model: nn.Module, adapter_name: str, *given: Any, **options: Any) -> Any:
        config = self.peft_config[adapter_name]
        _check_base(model, config)
        _warn_of_missing_mechanism(model, config)
        _check_learned(model, config)
        injected = inject(self, model, adapter_name, *given, **options)
        _check_targets(model)
        return injected

    def from_json_file(path_json_file: str, **options: Any) -> Any:
        content = read(path_json_file, **options)
        facts = content.pop(KEY, None)
        if facts is not None:
            content["peft_type"] = facts["peft_type"]
            content["auto_mapping"] = {**(content.get("auto_mapping") or {}), KEY: facts["mechanism"]}
        return content

    @functools.wraps(read_config)
    def from_pretrained(cls: type[PeftConfigMixin], *given: Any, **options: Any) -> Any:
        config = read_config(cls, *given, **options)
        vars(config)[IS_SAVED] = True
        return config

    PeftModel.save_pretrained = save_pretrained  # type: ignore[method-assign]
    PeftModel.load_adapter = load_adapter  # type: ignore[method-assign]
    BaseTuner.inject_adapter = inject_adapter  # type: ignore[method-assign]
    PeftConfigMixin.from_json_file = staticmethod(from_json_file)  # type: ignore[method-assign]
    PeftConfigMixin.from_pretrained = classmethod(from_pretrained)  # type: ignore[method-assign,assignment]


def _check_base(model: nn.Module, config: Any) -> None:
    """Refuse an adapter whose base had another mechanism than this model has."""
    line, mechanism = _get_line(config), mechanism_of(model)
    if line is None:
        return
    wanted = parse_line(line)
    if mechanism != wanted:
        has = "has none" if mechanism is None else f"has '{mechanism}'"
        raise InstallError(
            f"this adapter was trained on a model with '{wanted}', and the base model {has}; call "
            f"attnlab.install(base, '{wanted}') before loading the adapter"
        )


def _warn_of_missing_mechanism(model: nn.Module, config: Any) -> None:
    """Warn if a saved adapter names no mechanism, and this model has one."""
    mechanism = mechanism_of(model)
    if _get_line(config) is None and hasattr(config, IS_SAVED) and mechanism not in (None, BASELINE):
        warnings.warn(
            f"this adapter names no mechanism, so it was probably trained on plain attention, and the base model "
            f"has '{mechanism}'; if that is not intended, load it into a base without a mechanism",
            AttnlabWarning,
            stacklevel=4,
        )
        vars(config)[IS_WARNED] = True


def _get_line(config: Any) -> str | None:
    line: str | None = (getattr(config, "auto_mapping", None) or {}).get(KEY)
    return line


def _check_learned(model: nn.Module, config: Any) -> None:
    """Refuse copies of a parameter that layers share; warn if peft freezes what the mechanism learns."""
    layers = [layer for _, _, layer in attention_layers(model)]
    is_copied = KEY in (getattr(config, "modules_to_save", None) or ())
    shared = next((name for layer in layers for name in layer.owners), None)
    advice = f"modules_to_save=['{KEY}'] trains it beside the adapter"
    if shared is not None:
        learned = dict.fromkeys(name for layer in layers for name, p in layer.named_parameters() if p.requires_grad)
        advice = (
            f"after get_peft_model, call requires_grad_() on each of its parameters ({', '.join(learned)} of the "
            f"submodules '{KEY}') that should train"
        )
    if is_copied and shared is not None:
        raise InstallError(
            f"all layers share '{shared}' of '{mechanism_of(model)}', and modules_to_save=['{KEY}'] would train a copy "
            f"for each; write per=layer or per=head in the line, or omit modules_to_save, and {advice}"
        )
    has_learned = any(parameter.requires_grad for layer in layers for parameter in layer.parameters())
    if has_learned and not is_copied and not hasattr(config, IS_SAVED) and not hasattr(config, IS_OWN):
        warnings.warn(
            f"peft freezes what '{mechanism_of(model)}' learns with the rest of the base model; {advice}",
            AttnlabWarning,
            stacklevel=4,
        )


def _check_targets(model: nn.Module) -> None:
    """Refuse adapters on weights that a mixer has replaced: they would train nothing."""
    for name, module, layer in attention_layers(model):
        if not layer.replaces_weights:
            continue
        for target, part in module.named_modules():
            if isinstance(part, BaseTunerLayer) and target.split(".")[0] != KEY:
                raise InstallError(
                    f"'{layer.mechanism}' takes the place of '{name}' and does not use its '{target}', so that an "
                    f"adapter there would train nothing; choose target_modules outside of attention"
                )


def _add_mechanism(model: PeftModel, folder: Path, mechanism: Line) -> None:
    """Write the mechanism into the config of a saved adapter, and its learned parameters beside the adapter's."""
    file = folder / CONFIG_NAME
    content = parse_json(file.read_bytes())
    content[KEY] = {"mechanism": str(mechanism), "peft_type": content["peft_type"]}
    content["peft_type"] = NEEDS_ATTNLAB.format(content["peft_type"], mechanism)
    if content.get("auto_mapping"):
        content["auto_mapping"].pop(KEY, None)
    file.write_text(json.dumps(content, indent=2, sort_keys=True), encoding="utf-8")
    # Those of a layer that peft copies (modules_to_save, original_module) are part of the adapter already.
    learned = {
        name: parameter.detach().contiguous()
        for name, parameter in model.named_parameters()
        if f".{KEY}." in name and not {"modules_to_save", "original_module"} & {*name.split(".")}
    }
    if learned and (folder / SAFETENSORS_WEIGHTS_NAME).is_file():
        weights = load_file(folder / SAFETENSORS_WEIGHTS_NAME)
        save_file({**weights, **learned}, folder / SAFETENSORS_WEIGHTS_NAME, metadata={"format": "pt"})


extend_peft()
