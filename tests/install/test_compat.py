"""The private names of torch and transformers that install uses exist, and mean what they are used for."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface, AutoModelForCausalLM

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
