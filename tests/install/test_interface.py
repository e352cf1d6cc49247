"""The attention function that transformers calls: scales, weights, and modules without a mechanism."""

from __future__ import annotations

import pytest
import torch

import attnlab
from attnlab.errors import InstallError
from tests.install.models import build, padding, tokens, twin


def test_dot_takes_the_models_own_scale_and_other_scores_do_not() -> None:
    granite = build("granite")
    baseline = attnlab.install(twin(granite), "dot | softmax")(tokens()).last_hidden_state
    stated = attnlab.install(twin(granite), "dot(scale=0.3) | softmax")(tokens()).last_hidden_state
    other = attnlab.install(twin(granite), "dot(scale=0.5) | softmax")(tokens()).last_hidden_state
    torch.testing.assert_close(baseline, stated)
    assert not torch.allclose(baseline, other, atol=1e-3)
    attnlab.install(twin(granite), "cosine | softmax")(tokens())


def test_a_query_that_a_model_scales_beforehand_is_given_back() -> None:
    model = attnlab.install(build("opt"), "euclidean | softmax")
    attention = model.decoder.layers[0].self_attn
    seen: list[torch.Tensor] = []
    attention.attnlab.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    attention.q_proj.register_forward_hook(lambda _, args, out: seen.append(out))
    model(tokens())
    projected, given = seen
    torch.testing.assert_close(given.transpose(1, 2).flatten(2), projected)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu(divide=n)"])
def test_the_weights_can_be_looked_at(name: str, line: str) -> None:
    model = attnlab.install(build(name), line)
    mask = padding("right")
    plain = model(tokens(), attention_mask=mask)
    assert getattr(plain, "attentions", None) is None
    shown = model(tokens(), attention_mask=mask, output_attentions=True)
    assert [w.shape for w in shown.attentions] == [(3, 4, 9, 9)] * 2
    torch.testing.assert_close(shown.last_hidden_state, plain.last_hidden_state)
    assert not shown.attentions[0][1, ..., 6:].any()
    if line == "dot | softmax":
        expected = build(name)(tokens(), attention_mask=mask, output_attentions=True).attentions
        for found, wanted in zip(shown.attentions, expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_a_config_from_a_model_with_a_mechanism_does_not_leak_into_another() -> None:
    model = attnlab.install(build("bert"), "cosine | softmax")
    other = type(model)(model.config)
    with pytest.raises(InstallError, match="holds no mechanism"):
        other(tokens())


def test_what_a_mechanism_does_not_support_is_refused() -> None:
    model = attnlab.install(build("gpt2"), "dot | softmax")
    with pytest.raises(InstallError, match=r"'h.0.attn' has a position bias, which 'dot \| softmax' does not support"):
        model(tokens(), position_bias=torch.zeros(1))


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_gradients_reach_the_weights_that_a_model_returns(name: str) -> None:
    model = attnlab.install(build(name), "cosine | relu(divide=n)")
    output = model(tokens(), output_attentions=True)
    output.attentions[0].retain_grad()
    output.last_hidden_state.square().sum().backward()
    assert output.attentions[0].grad is not None
    assert output.attentions[0].grad.abs().sum() > 0
