"""`dot | softmax` in a model is the model: outputs and gradients of the original, padded, causal and cached."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, DynamicCache, PreTrainedModel

import attnlab
from tests.install.models import LENGTH, STRUCTURES, build, padding, pair, tokens, twin

RELATIVE = 1e-5


def close(found: Tensor, expected: Tensor, size: Tensor | None = None) -> bool:
    size = expected.norm() if size is None else size
    return bool((found - expected).norm() <= RELATIVE * size)


def run(model: PreTrainedModel, mask: Tensor | None) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the last hidden state of real tokens, and the gradients of a sum that weighs each number differently."""
    model.zero_grad()
    hidden = model(input_ids=tokens(), attention_mask=mask).last_hidden_state
    hidden = hidden if mask is None else hidden * mask[..., None]
    (hidden * torch.linspace(-30, 30, hidden.numel()).view_as(hidden).sin()).sum().backward()
    return hidden.detach(), {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("side", ["none", "right", "left"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_baseline_is_the_original(name: str, side: str) -> None:
    original = build(name)
    installed = attnlab.install(twin(original), "dot | softmax")
    assert isinstance(installed, PreTrainedModel)
    expected, expected_grads = run(original, padding(side))
    found, found_grads = run(installed, padding(side))
    assert close(found, expected)
    assert found_grads.keys() == expected_grads.keys()
    largest = max(grad.norm() for grad in expected_grads.values())
    for parameter, grad in expected_grads.items():
        # A gradient that is 0 in exact numbers, such as a key's bias, is noise of the size of the others' rounding.
        assert close(found_grads[parameter], grad, torch.maximum(grad.norm(), largest / 100)), parameter


CAUSAL = [
    "bert decoder",
    "gpt2",
    "opt",
    "llama",
    "llama grouped",
    "mistral window",
    "qwen3",
    "gemma3 windows",
    "gpt-neox",
]


@pytest.mark.parametrize("side", ["none", "left"])
@pytest.mark.parametrize("name", CAUSAL)
def test_a_cache_gives_what_the_whole_sequence_gives(name: str, side: str) -> None:
    model = attnlab.install(build(name, AutoModelForCausalLM), "dot | softmax")
    mask = padding(side)
    positions = None if mask is None else (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        whole = build(name, AutoModelForCausalLM)(tokens(), attention_mask=mask, position_ids=positions).logits
        cache, parts = DynamicCache(config=model.config), []
        for start, stop in ((0, 4), (4, 7), (7, 8), (8, 9)):
            parts.append(
                model(
                    tokens()[:, start:stop],
                    attention_mask=None if mask is None else mask[:, :stop],
                    position_ids=None if positions is None else positions[:, start:stop],
                    past_key_values=cache,
                    use_cache=True,
                ).logits
            )
    real = torch.ones(3, LENGTH, dtype=torch.bool) if mask is None else mask.bool()
    assert close(torch.cat(parts, 1)[real], whole[real])


def test_gpt2_with_cross_attention_is_the_original() -> None:
    original = build("gpt2", add_cross_attention=True)
    installed = attnlab.install(twin(original), "dot | softmax")
    states = torch.randn(3, 5, 32, generator=torch.Generator().manual_seed(2))
    encoder_mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])
    for mask in (None, encoder_mask):
        given = {"input_ids": tokens(), "encoder_hidden_states": states, "encoder_attention_mask": mask}
        assert close(installed(**given).last_hidden_state, original(**given).last_hidden_state)


def test_bart_decodes_with_masks_on_both_sides_as_the_original() -> None:
    original = build("bart")
    installed = attnlab.install(twin(original), "dot | softmax")
    given = {
        "input_ids": tokens(), "attention_mask": padding("right"), "decoder_input_ids": tokens(length=5),
        "decoder_attention_mask": torch.tensor([[1] * 5, [1] * 5, [0, 1, 1, 1, 1]]),
    }  # fmt: skip
    found, expected = installed(**given), original(**given)
    assert close(found.last_hidden_state[:2], expected.last_hidden_state[:2])
    assert close(found.last_hidden_state[2, 1:], expected.last_hidden_state[2, 1:])


def test_two_berts_with_cross_attention_are_the_original() -> None:
    original = pair()
    installed = attnlab.install(twin(original), "dot | softmax")
    given = {"input_ids": tokens(), "attention_mask": padding("right"), "decoder_input_ids": tokens(length=5)}
    assert close(installed(**given).logits, original(**given).logits)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_decoder_told_to_look_both_ways_is_the_original(name: str) -> None:
    original = build(name, is_causal=False)
    installed = attnlab.install(twin(original), "dot | softmax")
    for side in ("none", "right"):
        mask = padding(side)
        found, expected = (m(tokens(), attention_mask=mask).last_hidden_state[:, :6] for m in (installed, original))
        assert close(found, expected)


@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu(divide=n) | value_residual"])
@pytest.mark.parametrize("model", ["bart", "pair"])
def test_an_encoder_decoder_generates_the_same_with_and_without_a_cache(model: str, line: str) -> None:
    built = attnlab.install(pair() if model == "pair" else build("bart", AutoModelForSeq2SeqLM), line)
    settings = {"max_new_tokens": 5, "do_sample": False, "decoder_start_token_id": 1}
    both = [
        built.generate(tokens(), attention_mask=padding("right"), use_cache=use_cache, **settings)
        for use_cache in (True, False)
    ]
    assert torch.equal(*both)


@pytest.mark.parametrize("name", ["bert", "gpt2", "opt", "llama grouped"])
def test_attention_dropout_acts_while_training_at_the_models_rate(name: str) -> None:
    rate = {"bert": "attention_probs_dropout_prob", "gpt2": "attn_pdrop"}.get(name, "attention_dropout")
    others: dict[str, Any] = {"hidden_dropout_prob": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "dropout": 0.0}
    model = attnlab.install(build(name, **{**others, rate: 0.5}), "dot | softmax")
    calm = model(tokens()).last_hidden_state
    model.train()
    torch.manual_seed(0)
    first = model(tokens()).last_hidden_state
    torch.manual_seed(0)
    again = model(tokens()).last_hidden_state
    assert torch.equal(first, again)
    assert not torch.allclose(first, calm, atol=1e-3)
    assert torch.equal(model.eval()(tokens()).last_hidden_state, calm)
