"""The forget gate: what a token keeps of the past."""

import math

import pytest
import torch
from torch import Tensor

from attnlab.errors import MechanismError
from attnlab.mechanisms import Dims, Mechanism
from attnlab.mechanisms.forgetting import ForgetGate

DIMS = Dims(num_heads=3, head_dim=4, value_dim=5, model_dim=7)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_gate_is_the_sigmoid_of_the_layers_input() -> None:
    x, like = normal(2, 6, 7), normal(2, 3, 6, 4)
    p = {"weight": normal(3, 7, seed=1), "bias": normal(3, seed=2)}
    kept = ForgetGate().log_kept(x, p, like).exp()
    assert kept.shape == (2, 3, 6, 1)
    inner = float(x[1, 4] @ p["weight"][2] + p["bias"][2])
    assert kept[1, 2, 4, 0].item() == pytest.approx(1 / (1 + math.exp(-inner)))


def test_a_gate_per_channel() -> None:
    x, like = normal(2, 6, 7), normal(2, 3, 6, 4)
    p = {"weight": normal(3, 4, 7, seed=1), "bias": normal(3, 4, seed=2)}
    kept = ForgetGate(per="channel").log_kept(x, p, like).exp()
    assert kept.shape == (2, 3, 6, 4)
    inner = float(x[1, 4] @ p["weight"][2, 3] + p["bias"][2, 3])
    assert kept[1, 2, 4, 3].item() == pytest.approx(1 / (1 + math.exp(-inner)))


def test_fixed_rates() -> None:
    like = normal(2, 3, 6, 4)
    assert ForgetGate(rate=0.5).parameters(DIMS) == {}
    assert not ForgetGate(rate=0.5).uses_x
    torch.testing.assert_close(
        ForgetGate(rate=0.5).log_kept(None, {}, like).exp(), torch.full((1, 3, 6, 1), 0.5).double()
    )
    rates = ForgetGate(rate="retention").log_kept(None, {}, like).exp()[0, :, 0, 0]
    torch.testing.assert_close(rates, torch.tensor([1 - 2**-5, 1 - 2**-6, 1 - 2**-7], dtype=torch.float64))


def test_the_gate_starts_almost_open() -> None:
    bias = ForgetGate().parameters(DIMS)["bias"]
    assert 1 / (1 + math.exp(-bias.low)) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dot | softmax | forget(per=channel)", "under identity weights"),
        ("euclidean | identity | forget(per=channel)", "channels of a dot product"),
        ("dot | identity | cap(5) | forget(per=channel)", "without a cap"),
        ("dot | identity | alibi | forget(per=channel)", "bias of positions"),
        ("dot | identity | talking_heads | forget(per=channel)", "mixed scores"),
        ("dot | identity | feature(taylor) | forget(per=channel)", "channels of a dot product"),
        ("dot | identity | delta | forget(per=channel)", "one number per head"),
        ("dot | softmax | forget(per=channel, rate=0.5)", "one per head"),
        ("dot | softmax | forget(rate=1)", "below 1"),
    ],
)
def test_what_has_no_channels_to_fade_is_refused(line: str, words: str) -> None:
    with pytest.raises(MechanismError, match=words):
        Mechanism.parse(line)
