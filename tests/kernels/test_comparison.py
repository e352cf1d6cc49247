"""A mechanism and its peers are measured on the same inputs, and eager only where it fits."""

import pytest
import torch

from attnlab.errors import KernelError
from attnlab.kernels import comparison
from attnlab.kernels.comparison import Setting, compare, explain_missing_eager, own_step
from attnlab.mechanisms import Mechanism

TINY = Setting(batch=2, num_heads=2, head_dim=8)


def test_inputs_are_the_same_at_every_call() -> None:
    for first, second in zip(TINY.inputs(5), TINY.inputs(5), strict=True):
        assert first.shape == (2, 2, 5, 8)
        assert torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_all_three_are_measured(dtype: torch.dtype) -> None:
    setting = Setting(num_heads=2, head_dim=8, dtype=dtype)
    found = compare(Mechanism.parse("dot | relu"), 16, setting, budget=0)
    assert found.choice.kernel == "blockwise"
    assert found.left_out == ""
    assert found.eager is not None
    assert min(found.own.seconds, found.sdpa.seconds, found.eager.seconds) > 0


def test_learned_parameters_get_gradients() -> None:
    mechanism = Mechanism.parse("additive | softmax")
    gradients = own_step(mechanism, 7, TINY)()
    shapes = [declared.shape for declared in mechanism.parameters(2, 8).values()]
    assert [tuple(gradient.shape) for gradient in gradients[3:] if gradient is not None] == shapes


def test_a_kernel_that_cannot_is_refused() -> None:
    with pytest.raises(KernelError, match="linear"):
        compare(Mechanism.parse("dot | softmax"), 16, TINY, "linear", budget=0)


def test_eager_is_left_out_where_it_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = Mechanism.parse("manhattan | softmax")
    all_vectors = 2 * 2 * 64**2 * 8 * 4
    monkeypatch.setattr(comparison, "EAGER_LIMIT", 20 * all_vectors)
    assert explain_missing_eager(mechanism, 64, TINY) == ""
    assert "it would take about" in explain_missing_eager(mechanism, 64 * 10, TINY)
    assert compare(mechanism, 64 * 10, TINY, budget=0).eager is None
