"""The reference: weights, masks and lengths as the definitions state them."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from attnlab import attend, weights
from attnlab.errors import ShapeError
from attnlab.mechanisms import UNIFORM, Params, Score, stage

from .problems import x_for


def tensors(*shape: int, seed: int = 0) -> list[Tensor]:
    return list(torch.randn(3, *shape, generator=torch.Generator().manual_seed(seed)).unbind(0))


def test_weights_times_values_is_the_output() -> None:
    q, k, v = tensors(2, 2, 9, 4)
    for name, mechanism in UNIFORM.items():
        if mechanism.values or mechanism.output or mechanism.delta is not None or mechanism.heads is not None:
            continue
        x = x_for(name, q, k)
        w = weights(q, k, name, causal=True, x=x)
        torch.testing.assert_close(w @ v, attend(q, k, v, name, causal=True, x=x), msg=name)


def test_causal_weights_see_no_future_and_divide_by_what_is_seen() -> None:
    q, k, _ = tensors(1, 1, 5, 4)
    w = weights(q, k, "dot | identity(divide=n)", causal=True)
    scores = q @ k.mT / 2
    for i in range(5):
        torch.testing.assert_close(w[0, 0, i, : i + 1], scores[0, 0, i, : i + 1] / (i + 1))
        assert (w[0, 0, i, i + 1 :] == 0).all()


def test_padding_never_counts_in_the_length() -> None:
    q, k, v = tensors(1, 2, 6, 4)
    mask = torch.tensor([True, True, False, True, False, False])
    for line in ("dot | relu(divide=n)", "dot | sigmoid", "cosine | identity(divide=learned)"):
        short = attend(q, k[:, :, mask], v[:, :, mask], line)
        torch.testing.assert_close(attend(q, k, v, line, mask=mask), short)


def test_the_leaking_masks_are_what_they_are_said_to_be() -> None:
    q, k, _ = tensors(1, 1, 5, 4)
    everything = weights(q, k, "dot | softmax")
    torch.testing.assert_close(weights(q, k, "dot | softmax | mask(after)", causal=True), everything.tril())
    zeroed = torch.softmax((q @ k.mT / 2).tril(), -1)
    torch.testing.assert_close(weights(q, k, "dot | softmax | mask(zero)", causal=True), zeroed)
    for where in ("after", "zero"):
        same = weights(q, k, f"dot | softmax | mask({where})")
        torch.testing.assert_close(same, everything)


def test_padding_is_left_out_properly_whatever_the_mask_stage() -> None:
    q, k, v = tensors(1, 1, 6, 4)
    mask = torch.tensor([True, True, True, True, False, False])
    for where in ("before", "after", "zero"):
        line = f"dot | softmax | mask({where})"
        short = attend(q[:, :, :4], k[:, :, :4], v[:, :, :4], line, causal=True)
        torch.testing.assert_close(attend(q, k, v, line, causal=True, mask=mask)[:, :, :4], short)


def test_a_stage_of_the_wrong_shape_is_named(own_stages: None) -> None:
    @stage("short")
    @dataclass(frozen=True)
    class Short(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return (q @ k.mT)[..., :-1]

    q, k, v = tensors(2, 2, 6, 4)
    with pytest.raises(ShapeError, match="'short' must return"):
        attend(q, k, v, "short | softmax")
