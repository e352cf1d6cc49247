"""The private names of torch and transformers that install uses exist, and mean what they are used for."""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from torch import nn
from transformers import AttentionInterface, AutoModelForCausalLM, PreTrainedModel, Trainer

from attnlab.install import compat
from tests.install.models import build, tokens


def test_the_name_in_the_config_decides_which_function_is_called() -> None:
    model = build("bert")
    assert compat.get_attention_name(model.config) == "eager"
    calls: list[Any] = []

    def attend(module: nn.Module, q: torch.Tensor, *given: Any, **more: Any) -> tuple[torch.Tensor, None]:
        calls.append(module)
        return q.transpose(1, 2), None

    AttentionInterface.register("compat_test", attend)
    compat.set_attention_name(model.config, "compat_test")
    assert compat.get_attention_name(model.config) == "compat_test"
    model(tokens())
    assert calls == [layer.attention.self for layer in model.encoder.layer]


def test_modeling_files_look_attention_up_in_the_registry() -> None:
    for name in ("bert", "gpt2", "llama"):
        file = sys.modules[type(build(name)).__module__]
        assert hasattr(file, compat.ATTENTION_REGISTRY)


def test_a_compiled_module_is_recognised() -> None:
    module = nn.Linear(2, 2)
    assert not compat.is_compiled(module)
    wrapped = torch.compile(module, backend="eager")
    assert isinstance(wrapped, nn.Module)
    assert compat.is_compiled(wrapped)
    assert compat.original_module(wrapped) is module
    module.compile(backend="eager")
    assert compat.is_compiled(module)


def test_recording_of_attentions_is_seen_from_inside_a_pass() -> None:
    model = build("bert").eval()
    compat.set_attention_name(model.config, "eager")
    seen: list[bool] = []
    model.encoder.layer[0].attention.self.register_forward_hook(lambda *_: seen.append(compat.records_attentions()))
    model(tokens())
    model(tokens(), output_attentions=True)
    assert seen == [False, True]


def test_a_model_says_whether_it_takes_a_static_cache() -> None:
    assert compat.supports_static_cache(build("llama", AutoModelForCausalLM))
    assert not compat.supports_static_cache(nn.Linear(2, 2))
    assert all(hasattr(build(name), "_can_compile_fullgraph") for name in ("bert", "gpt2", "llama"))


def test_from_pretrained_asks_for_files_and_loads_weights_through_the_names_that_are_extended(tmp_path: Any) -> None:
    source = inspect.getsource(PreTrainedModel.from_pretrained)
    assert "_get_resolved_checkpoint_files(\n                pretrained_model_name_or_path=" in source
    assert 'transformers_explicit_filename=getattr(config, "transformers_weights", None)' in source
    assert "cls._load_pretrained_model(\n                model, state_dict, checkpoint_files, load_config" in source


def test_output_attentions_is_validated_where_it_is_extended() -> None:
    config: Any = build("bert").config
    assert [v for v in type(config).__class_validators__ if v.__name__ == "validate_output_attentions"]
    compat.set_attention_name(config, "attnlab")
    config.output_attentions = True
    config.validate()
    compat.set_attention_name(config, "sdpa")
    with pytest.raises(StrictDataclassError, match="output_attentions"):
        config.validate()


def test_trainer_loads_checkpoints_through_the_names_that_are_extended() -> None:
    class Kind:
        state = SimpleNamespace(best_model_checkpoint="best")

        def __init__(self) -> None:
            self.loaded: list[str] = []

        def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
            self.loaded.append(f"trainer: {resume_from_checkpoint}")

        def _load_best_model(self) -> None:
            self.loaded.append("trainer: best")

    for name in ("_load_from_checkpoint", "_load_best_model"):
        expected, ours = (list(inspect.signature(getattr(kind, name)).parameters) for kind in (Trainer, Kind))
        assert expected == ours
    compat.hook_checkpoint_loading(Kind, lambda trainer, folder: trainer.loaded.append(folder) or folder == "ours")
    trainer = Kind()
    trainer._load_from_checkpoint("ours")
    trainer._load_from_checkpoint("theirs", None)
    trainer._load_best_model()
    assert trainer.loaded == ["ours", "theirs", "trainer: theirs", "best", "trainer: best"]
