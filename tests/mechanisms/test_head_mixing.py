"""Heads that meet: mixed scores and weights, and differences of pairs."""

import math

import pytest
import torch
from torch import Tensor

from attnlab.errors import ShapeError
from attnlab.mechanisms import Dims
from attnlab.mechanisms.head_mixing import Differential, TalkingHeads

from .parameters import draw

DIMS = Dims(num_heads=4, head_dim=6, value_dim=5)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_talking_heads_start_apart() -> None:
    stage, scores = TalkingHeads(), normal(2, 4, 5, 7)
    p = {name: value.double() for name, value in draw(stage, DIMS).items()}
    assert torch.equal(stage.mix_scores(scores, p), scores)
    assert torch.equal(stage.mix_weights(scores, p), scores)
    matrix = normal(4, 4, seed=1)
    mixed = stage.mix_scores(scores, {"scores": matrix, "weights": p["weights"]})
    torch.testing.assert_close(mixed[1, 2], sum(matrix[h, 2] * scores[1, h] for h in range(4)))


@pytest.mark.parametrize(("layer", "start"), [(0, 0.2), (3, 0.8 - 0.6 * math.exp(-0.9))])
def test_differential_subtracts_pairs_and_normalises_them(layer: int, start: float) -> None:
    stage, v = Differential(), normal(2, 4, 7, 5)
    spread = stage.spread_values(v)
    assert torch.equal(spread[:, 1], torch.cat([v[:, 1], v[:, 3]], -1))
    assert torch.equal(spread[:, 3], spread[:, 1])
    p = {name: value.double() for name, value in draw(stage, DIMS).items()}
    output = normal(2, 4, 3, 10, seed=2)
    combined = stage.combine(output, p, layer)
    assert combined.shape == (2, 4, 3, 5)
    one = {name: float(value[1] @ p[other][1]) for name, value, other in (
        ("first", p["query1"], "key1"), ("second", p["query2"], "key2"))}  # fmt: skip
    factor = math.exp(one["first"]) - math.exp(one["second"]) + start
    pair = output[0, 1, 2] - factor * output[0, 3, 2]
    pair = pair / (pair.square().mean() + 1e-5).sqrt() * (1 - start)
    torch.testing.assert_close(torch.cat([combined[0, 2, 2], combined[0, 3, 2]]), pair)


def test_an_odd_number_of_heads_has_no_pairs() -> None:
    with pytest.raises(ShapeError, match="pairs of heads, and there are 3"):
        Differential().spread_values(normal(1, 3, 2, 2))
