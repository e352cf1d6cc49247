"""What a checkpoint holds of a tuned model, and the hash of what it does not hold."""

from typing import get_args

import pytest
import torch

import attnlab
from attnlab.training.spec import Mode, Tuning
from attnlab.training.tuning.apply import apply_tuning
from attnlab.training.tuning.state import get_trained_state, hash_frozen_weights
from tests.install.models import build, tokens
from tests.training.tuning.models import HEADS, shaken, trained_names, tuned, way


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_the_trained_state_is_all_that_another_model_needs(name: str, mode: str) -> None:
    model = shaken(tuned(name, "classes", way(mode)))
    state = get_trained_state(model)
    assert set(state) == trained_names(model)
    other = tuned(name, "classes", way(mode), seed=9)
    assert not torch.equal(other(tokens(1)).logits, model(tokens(1)).logits)
    found = other.load_state_dict(state, strict=False)
    assert not found.unexpected_keys
    assert torch.equal(other(tokens(1)).logits, model(tokens(1)).logits)


def test_what_is_tied_is_there_once() -> None:
    model = attnlab.install(build("gpt2", HEADS["causal"]), "dot | softmax")
    apply_tuning(model, Tuning(), has_new_head=False)
    state = get_trained_state(model)
    assert "transformer.wte.weight" in state
    assert "lm_head.weight" not in state
    assert not any(value.requires_grad for value in state.values())


def test_buffers_that_are_saved_are_there_and_others_are_not() -> None:
    model = tuned("bert", "classes", Tuning(mode="head"))
    model.bert.register_buffer("seen", torch.tensor(3))
    model.bert.register_buffer("scratch", torch.tensor(3), persistent=False)
    assert set(get_trained_state(model)) == {"classifier.weight", "classifier.bias", "bert.seen"}


def test_the_hash_is_of_what_is_frozen() -> None:
    model = tuned("bert", "classes", Tuning(mode="head"))
    first = hash_frozen_weights(model)
    assert len(first) == 64
    assert hash_frozen_weights(tuned("bert", "classes", Tuning(mode="head"), seed=5)) == first
    assert hash_frozen_weights(shaken(model)) == first
    with torch.no_grad():
        model.bert.embeddings.LayerNorm.bias[3] += 1e-6
    assert hash_frozen_weights(model) != first
    assert hash_frozen_weights(tuned("bert", "classes", Tuning())) == hash_frozen_weights(torch.nn.Linear(2, 2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_the_hash_knows_dtypes_shapes_and_names(dtype: torch.dtype) -> None:
    def digest(**parameters: torch.Tensor) -> str:
        module = torch.nn.Module()
        for name, value in parameters.items():
            module.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))
        return hash_frozen_weights(module)

    zeros = torch.zeros(2, 3)
    hashes = [digest(a=zeros), digest(b=zeros), digest(a=zeros.T), digest(a=zeros.to(dtype)), digest(a=zeros, b=zeros)]
    assert len(set(hashes)) == 5
    assert digest(a=torch.zeros((), dtype=dtype)) != digest(a=torch.zeros(1, dtype=dtype))
    wide = torch.arange(6.0).reshape(2, 3).to(dtype)
    assert digest(a=wide.T) == digest(a=wide.T.contiguous())
