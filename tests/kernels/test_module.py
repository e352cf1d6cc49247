"""Attention as a module: parameters, penalty, token dropout, copies, and wrong sizes."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab import Attention, attend
from attnlab.errors import RequestError, ShapeError


def tensors(*shape: int, seed: int = 0) -> list[Tensor]:
    return list(torch.randn(3, *shape, generator=torch.Generator().manual_seed(seed)).unbind(0))


def test_a_module_has_the_parameters_and_trains_them() -> None:
    module = Attention("additive | softmax | gate", num_heads=2, head_dim=4, model_dim=6)
    assert {name: tuple(p.shape) for name, p in module.named_parameters()} == {
        "additive_query": (2, 4, 4),
        "additive_key": (2, 4, 4),
        "additive_out": (2, 4),
        "gate_weight": (2, 1, 6),
    }
    q, k, v = tensors(1, 2, 5, 4)
    x = torch.randn(1, 5, 6, generator=torch.Generator().manual_seed(1))
    module(q, k, v, causal=True, x=x).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())
    again = Attention("additive | softmax | gate", num_heads=2, head_dim=4, seed=5, model_dim=6)
    again.load_state_dict(module.state_dict())
    assert torch.equal(again(q, k, v, x=x), module(q, k, v, x=x))
    assert "additive | softmax | gate" in repr(module)


def test_two_modules_do_not_share_their_initial_values() -> None:
    one, two = (Attention("additive | softmax", num_heads=1, head_dim=2) for _ in range(2))
    with torch.no_grad():
        next(one.parameters()).zero_()
    assert next(two.parameters()).abs().sum() > 0


def test_penalty_is_the_mean_square_of_the_output() -> None:
    q, k, v = tensors(1, 2, 5, 4)
    module = Attention("dot | softmax | penalize(output, 0.1)", num_heads=2, head_dim=4)
    out = module(q, k, v)
    assert module.penalty is not None
    torch.testing.assert_close(module.penalty, 0.1 * out.square().mean())
    plain = Attention("dot | softmax", num_heads=2, head_dim=4)
    plain(q, k, v)
    assert plain.penalty is None


def test_tokens_drop_only_while_training_and_for_all_queries_alike() -> None:
    q, k, v = tensors(3, 2, 40, 4)
    module = Attention("dot | relu | token_dropout(0.5)", num_heads=2, head_dim=4)
    torch.manual_seed(0)
    assert not torch.equal(module(q, k, v), attend(q, k, v, "dot | relu"))
    module.eval()
    assert torch.equal(module(q, k, v), attend(q, k, v, "dot | relu"))
    one = torch.eye(40).expand(3, 2, 40, 40)
    line = "dot(scale=0) | sigmoid(bias=0) | token_dropout(0.5)"
    seen = attend(torch.zeros(3, 2, 40, 4), torch.zeros(3, 2, 40, 4), one, line, training=True) > 0
    assert (seen == seen[:, :1, :1]).all()
    assert 0.3 < seen.float().mean() < 0.7


def test_a_module_can_be_copied_and_derived_from() -> None:
    class Layer(Attention):
        def __init__(self) -> None:
            super().__init__("additive | softmax | penalize(output, 0.1)", num_heads=2, head_dim=4)
            self.after = torch.nn.Linear(4, 4)

    q, k, v = (x.requires_grad_() for x in tensors(1, 2, 5, 4))
    layer = Layer()
    out = layer.after(layer(q, k, v))
    twin = copy.deepcopy(layer)
    assert twin.penalty is None
    torch.testing.assert_close(twin.after(twin(q, k, v)), out)


def test_a_query_of_another_size_is_refused() -> None:
    q, k, v = tensors(2, 2, 6, 4)
    with pytest.raises(ShapeError, match="this layer has 3 heads of 4; q has 2 of 4"):
        Attention("dot | softmax", num_heads=3, head_dim=4)(q, k, v)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_heads": 0}, "num_heads must be a positive integer, not 0"),
        ({"value_dim": 2.5}, "value_dim"),
        ({"dropout": 1}, "dropout"),
    ],
)
def test_wrong_sizes_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Attention(**{"mechanism": "dot | softmax", "num_heads": 2, "head_dim": 4, **change})
