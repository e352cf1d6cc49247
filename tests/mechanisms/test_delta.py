"""The delta rule's strength β."""

import torch

from attnlab.mechanisms import Dims
from attnlab.mechanisms.delta import Delta

DIMS = Dims(num_heads=3, head_dim=4, value_dim=5, model_dim=7)


def test_beta_is_the_sigmoid_of_the_layers_input() -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight, like = (torch.randn(shape, generator=generator) for shape in ((2, 6, 7), (3, 7), (2, 3, 6, 4)))
    stage = Delta()
    assert stage.uses_x
    assert stage.parameters(DIMS)["weight"].shape == (3, 7)
    beta = stage.strengths(x, {"weight": weight}, like)
    assert beta.shape == (2, 3, 6, 1)
    torch.testing.assert_close(beta[1, 2, 4, 0], torch.sigmoid(x[1, 4] @ weight[2]))


def test_a_fixed_beta_needs_nothing() -> None:
    stage, like = Delta(0.25), torch.zeros(2, 3, 6, 4)
    assert not stage.uses_x
    assert stage.parameters(DIMS) == {}
    assert torch.equal(stage.strengths(None, {}, like), torch.full((2, 3, 6, 1), 0.25))
