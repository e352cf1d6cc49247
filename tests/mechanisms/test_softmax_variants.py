"""Weights that vary softmax: known answers, masked pairs, and no overflow."""

import math

import pytest
import torch

from attnlab.mechanisms import Dims, Mechanism, Weights
from attnlab.mechanisms.softmax_variants import Cog, ScalableSoftmax, Softpick, StickBreaking
from attnlab.mechanisms.weights import Softmax

INF = math.inf


def weigh(stage: Weights, row: list[float], **parameters: float) -> list[float]:
    """Weigh one row of scores of one head."""
    scores = torch.tensor(row, dtype=torch.float64).view(1, 1, 1, -1)
    n = torch.full((1, 1, 1, 1), sum(score != -INF for score in row), dtype=torch.float64)
    p = {name: torch.tensor([value], dtype=torch.float64) for name, value in parameters.items()}
    weights: list[float] = stage(scores, n, p, visible=scores != -INF).flatten().tolist()
    return weights


@pytest.mark.parametrize(
    ("stage", "row", "parameters", "expected"),
    [
        (Softmax(sink="learned"), [0, 0], {"sink": math.log(2)}, [1 / 4, 1 / 4]),
        (Softmax(sink="learned"), [-1e4, -1e4], {"sink": 0.0}, [0, 0]),
        (Softmax(sink="learned"), [1e4, 1e4], {"sink": 0.0}, [1 / 2, 1 / 2]),
        (ScalableSoftmax(), [1, 0, -INF], {"scale": 1.0}, [2 / 3, 1 / 3, 0]),  # e^{log 2} against 1
        (ScalableSoftmax(), [5, -INF], {"scale": 1.0}, [1, 0]),  # log 1 = 0
        (Softpick(), [math.log(3), -math.log(2)], {}, [2 / 2.500001, 0]),
        (Softpick(), [-1, -2], {}, [0, 0]),
        (Softpick(), [math.log(3), -INF], {}, [2 / 2.000001, 0]),
        (Softpick(), [1e4, 1e4, 0], {}, [1 / 2, 1 / 2, 0]),
        (Cog(), [math.log(3), -math.log(3), -INF], {}, [1 / 2, -1 / 2, 0]),
        (Cog(), [0, math.log(3)], {}, [0, 3 / 4]),
        (StickBreaking(), [0, 0, 0], {}, [1 / 8, 1 / 4, 1 / 2]),
        (StickBreaking(), [0, -INF, 0], {}, [1 / 4, 0, 1 / 2]),
        (StickBreaking(), [0, 1e4], {}, [0, 1]),
    ],
    ids=str,
)
def test_the_weights_of_a_row(
    stage: Weights, row: list[float], parameters: dict[str, float], expected: list[float]
) -> None:
    assert weigh(stage, row, **parameters) == pytest.approx(expected, abs=1e-12)


def test_scalable_softmax_starts_as_softmax_at_the_length_of_training() -> None:
    scale = ScalableSoftmax(length=64).parameters(Dims(2, 8, 8))["scale"]
    assert scale.low == scale.high == pytest.approx(1 / math.log(64))


def test_the_sink_is_an_argument_of_softmax() -> None:
    mechanism = Mechanism.parse("dot | softmax(sink=learned, divide=n)")
    assert str(Mechanism.parse("dot | softmax(sink=none)")) == "dot | softmax"
    assert Mechanism.parse(str(mechanism)) == mechanism
    assert set(mechanism.parameters(2, 8)) == {"softmax_sink"}
