"""The Hugging Face model inside what a user passes, and its configs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModel

import attnlab
from attnlab.errors import InstallError
from attnlab.install.body import find_body
from tests.install.models import build, config, tokens


def test_what_holds_no_single_model_is_refused() -> None:
    name: Any = "bert"
    with pytest.raises(InstallError, match="not str"):
        attnlab.install(name, "dot | softmax")
    with pytest.raises(InstallError, match="Linear holds no Hugging Face model"):
        attnlab.install(nn.Linear(2, 2), "dot | softmax")
    with pytest.raises(InstallError, match="several Hugging Face models"):
        attnlab.install(nn.ModuleList([build("bert"), build("gpt2")]), "dot | softmax")


def test_the_body_of_a_wrapped_model_is_found() -> None:
    model = build("bert")
    assert find_body(model) is find_body(nn.Sequential(model)) is model
    compiled: Any = torch.compile(model, backend="eager")
    with pytest.raises(InstallError, match="this BertModel is compiled already"):
        find_body(compiled)


def test_models_built_from_one_config_do_not_feel_each_other() -> None:
    shared = config("bert")
    kind: Any = AutoModel
    arms = [kind.from_config(shared) for _ in range(3)]
    baseline, variant, other = (arm.eval() for arm in arms)
    before = baseline(tokens()).last_hidden_state
    attnlab.install(variant, "cosine | softmax")
    attnlab.install(other, "dot | relu(divide=n)")
    assert torch.equal(baseline(tokens()).last_hidden_state, before)
    assert baseline.config._attn_implementation == "sdpa"
    variant(tokens())
