"""The state of one forward pass: first values and penalties, and passes that fail."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.errors import InstallError
from attnlab.install import Layer, penalty
from tests.install.models import WIDTH, build, calm, tokens, with_loss


def test_a_layer_called_alone_does_not_know_the_first_values() -> None:
    model = attnlab.install(build("bert"), "value-residual")
    with pytest.raises(InstallError, match="called by itself"):
        model.encoder.layer[1](torch.randn(1, 3, WIDTH))
    model(tokens())


def test_a_pass_that_failed_leaves_nothing_behind() -> None:
    model = attnlab.install(build("bert"), "value-residual")
    expected = model(tokens()).last_hidden_state
    with pytest.raises(IndexError):
        model(tokens() + 1000)
    assert torch.equal(model(tokens()).last_hidden_state, expected)


def test_an_interrupted_pass_leaves_nothing_for_the_next() -> None:
    model: Any = attnlab.install(build("gpt2"), "dot | softmax | value_residual").eval()
    ids = tokens()
    before = model(ids)[0]

    def interrupt(module: nn.Module, args: Any) -> None:
        raise KeyboardInterrupt

    handle = model.h[1].register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model(ids.flip(1))
    handle.remove()
    assert torch.equal(model(ids)[0], before)


def test_checkpointing_that_would_lose_a_gradient_is_refused() -> None:
    model = with_loss("gpt2", use_cache=False).train()
    attnlab.install(model, "value-residual")
    model.gradient_checkpointing_enable()
    with pytest.raises(InstallError, match="gradient_checkpointing_disable"):
        model(tokens())
    model.eval()(tokens())
    model.train()
    attnlab.install(model, "output-penalty")
    model.gradient_checkpointing_enable({"use_reentrant": True})
    model.enable_input_require_grads()
    with pytest.raises(InstallError, match="'use_reentrant': False"):
        model(tokens(), labels=tokens())


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_penalty_joins_the_loss_of_training_and_not_of_evaluation(name: str) -> None:
    model, plain = calm(with_loss(name)), calm(with_loss(name))
    attnlab.install(model, "dot | softmax | penalize(output, 0.5)")
    attnlab.install(plain, "dot | softmax")
    squares: list[Tensor] = []
    for module in plain.modules():
        if isinstance(module, Layer):
            module.register_forward_hook(lambda _, args, out: squares.append(out[0].square().mean()))
    base = plain(tokens(), labels=tokens()).loss
    expected = 0.5 * torch.stack(squares).sum()
    loss = model(tokens(), labels=tokens()).loss
    torch.testing.assert_close(loss, base + expected)
    torch.testing.assert_close(penalty(model), expected)
    torch.testing.assert_close(model(tokens(), labels=tokens(), return_dict=False)[0], base + expected)
    torch.testing.assert_close(model.eval()(tokens(), labels=tokens()).loss, base)
    torch.testing.assert_close(penalty(model), expected)
    body = model.base_model.train()
    body(tokens())
    torch.testing.assert_close(penalty(model), expected)
    assert penalty(plain) is None
