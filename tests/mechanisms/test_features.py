"""Features of queries and keys: norms, shifted keys and feature maps."""

import math

import pytest
import torch
from torch import Tensor

from attnlab.mechanisms import Dims, Mechanism
from attnlab.mechanisms.features import FeatureMap, Norm, Shift

DIMS = Dims(num_heads=4, head_dim=6, value_dim=6, num_key_heads=2)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_rms_is_transformers_own_norm() -> None:
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    t, gain = normal(2, 4, 5, 6), normal(4, 6, seed=1)
    published = Qwen3RMSNorm(6).double()
    published.weight.data = gain[0]
    ours = Norm("rms", gain="channel")(t, "q", {"query": gain[:1], "key": gain[1:2]})
    # Qwen3 computes in fp32 whatever it is given.
    torch.testing.assert_close(ours, published(t), rtol=1e-6, atol=1e-6)


def test_l2_has_length_one_and_a_gain_per_head_multiplies_it() -> None:
    t, gain = normal(2, 4, 5, 6), normal(4, seed=1)
    lengths = Norm("l2", gain="head")(t, "k", {"query": torch.zeros(4), "key": gain}).norm(dim=-1)
    torch.testing.assert_close(lengths, gain.abs()[None, :, None].expand(2, -1, 5))


@pytest.mark.parametrize(
    ("gain", "shapes"),
    [(None, {}), ("head", {"query": (4,), "key": (2,)}), ("channel", {"query": (4, 6), "key": (2, 6)})],
)  # fmt: skip
def test_gains_start_at_one(gain: str | None, shapes: dict[str, tuple[int, ...]]) -> None:
    declared = Norm("rms", gain=gain).parameters(DIMS)  # type: ignore[arg-type]
    assert {name: parameter.shape for name, parameter in declared.items()} == shapes
    assert all((parameter.low, parameter.high) == (1, 1) for parameter in declared.values())


@pytest.mark.parametrize(("share", "kept"), [(0.5, 3), (0.0, 6), (1.0, 0), (0.3, 4)])
def test_a_shift_takes_the_last_channels_of_the_token_before(share: float, kept: int) -> None:
    t, before = normal(2, 4, 5, 6), normal(2, 4, 5, 6, seed=1)
    shifted = Shift(share=share)(t, "k", {}, before=before)
    assert torch.equal(shifted[..., :kept], t[..., :kept])
    assert torch.equal(shifted[..., kept:], before[..., kept:])
    assert Shift.sides == ("k",)


def test_taylor_features_multiply_to_the_polynomial_of_the_exponential() -> None:
    q, k = normal(2, 4, 5, 6), normal(2, 4, 7, 6, seed=1)
    stage = FeatureMap("taylor")
    left, right = stage(q, "q", {}), stage(k, "k", {})
    assert left.shape[-1] == stage.width(6) == 43
    s = q @ k.mT / math.sqrt(6)
    torch.testing.assert_close(left @ right.mT, 1 + s + s.square() / 2)


def test_feature_maps() -> None:
    t = normal(2, 4, 5, 6)
    torch.testing.assert_close(FeatureMap("elu1")(t, "q", {}), torch.where(t > 0, t + 1, t.exp()))
    assert torch.equal(FeatureMap("relu")(t, "k", {}), t.clamp(min=0))
    assert torch.allclose(FeatureMap("softmax")(t, "k", {}).sum(-1), torch.ones(2, 4, 5, dtype=torch.float64))
    assert {FeatureMap(kind).width(6) for kind in ("elu1", "relu", "softmax")} == {6}


def test_scores_with_parameters_fit_wider_features() -> None:
    declared = Mechanism.parse("additive | softmax | feature(taylor)").parameters(4, 6)
    assert declared["additive_query"].shape == (4, 43, 43)
