"""The way in: what `attend`, `weights` and `Attention` promise, and what they say about wrong input."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab import Attention, attend
from attnlab.errors import AttnlabError, KernelError, MechanismError, ParameterError, RequestError, ShapeError
from attnlab.kernels import attend_with_weights, initial_values
from attnlab.mechanisms import UNIFORM, Dims, Mechanism, Parameter, Params, Score, Value, Weights, masked_softmax, stage
from attnlab.mechanisms.scores import Dot

from .problems import tokens_for, x_for

KEYS = torch.tensor([[0.0, 1, 2], [1, 1, 2], [-1, 1, -2], [0, -1, -2]])
VALUES = torch.tensor([[3.0, 2, -4], [3, -2, 4], [3, 2, 0], [3, 2, 0]])
QUERY = torch.tensor([-2.0, 1, 1])


def tensors(*shape: int, seed: int = 0) -> list[Tensor]:
    return list(torch.randn(3, *shape, generator=torch.Generator().manual_seed(seed)).unbind(0))


@pytest.mark.parametrize("num_axes", [1, 2, 3, 4])
def test_hard_attention_picks_the_value_of_the_best_key(num_axes: int) -> None:
    q = QUERY.reshape((1,) * (num_axes - 1) + (3,))
    out = attend(q, KEYS, VALUES, "dot | argmax", scale=1)
    assert out.shape == q.shape
    assert out.flatten().tolist() == [3, 2, -4]


def test_one_query_against_a_cache_sees_all_of_it() -> None:
    q, k, v = tensors(2, 2, 12, 8)
    for name in UNIFORM:
        if "mask(" not in str(UNIFORM[name]):
            whole = attend(q, k, v, name, causal=True, x=x_for(name, q, k), tokens=tokens_for(name, k))
            last = attend(
                q[:, :, -1:], k, v, name, causal=True, x=x_for(name, q[:, :, -1:], k), tokens=tokens_for(name, k)
            )
            torch.testing.assert_close(last, whole[:, :, -1:], msg=name)


def test_grouped_key_heads_are_repeated() -> None:
    q = torch.randn(2, 6, 5, 4)
    k, v = torch.randn(2, 2, 2, 5, 4).unbind(0)
    repeated = attend(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1))
    torch.testing.assert_close(attend(q, k, v), repeated)


def test_bypass_adds_the_input_and_alpha_0_is_the_baseline() -> None:
    q, k, v = tensors(2, 2, 7, 4)
    x = torch.randn(2, 2, 7, 4)
    base = attend(q, k, v, causal=True)
    assert torch.equal(attend(q, k, v, "dot | softmax | bypass(alpha=0)", causal=True, x=x), base)
    expected = attend(q, k, v + 0.5 * x.relu(), causal=True)
    torch.testing.assert_close(attend(q, k, v, "value-bypass", causal=True, x=x), expected)
    # With no x the projection is taken to be 1: the tensor itself is the input.
    line = "dot | softmax | bypass(alpha=0.5, activation=identity)"
    torch.testing.assert_close(attend(q, k, v, line, causal=True), 1.5 * base)


def test_value_residual_mixes_the_first_layers_values() -> None:
    q, k, v = tensors(2, 2, 7, 4)
    first = torch.randn(2, 2, 7, 4)
    torch.testing.assert_close(attend(q, k, v, "value-residual", first=first), attend(q, k, (v + first) / 2))
    torch.testing.assert_close(attend(q, k, v, "value-residual"), attend(q, k, v))


def test_initial_values_depend_on_seed_and_name_alone() -> None:
    one = initial_values(Mechanism.parse("additive | softmax"), 2, 4, 4)
    two = initial_values(Mechanism.parse("additive | relu(divide=learned) | gate"), 2, 4, 4)
    assert all(torch.equal(one[name], two[name]) for name in one)
    other = initial_values(Mechanism.parse("additive | softmax"), 2, 4, 4, seed=1)
    assert not torch.equal(one["additive_query"], other["additive_query"])
    assert not torch.equal(one["additive_query"], one["additive_key"])


def test_explicit_generators_repeat_what_they_draw() -> None:
    q, k, v = tensors(1, 2, 30, 4)

    def run() -> Tensor:
        generator = torch.Generator().manual_seed(3)
        return attend(q, k, v, "token-dropout", dropout=0.2, training=True, generator=generator)

    assert torch.equal(run(), run())


@dataclass(frozen=True)
class Bad:
    """A wrong call and what its error must speak of."""

    error: type[AttnlabError]
    says: str
    change: dict[str, Any]


WRONG = [
    Bad(ShapeError, "mask must be boolean", {"mask": torch.ones(5, 5)}),
    Bad(ShapeError, "mask[:, None, None, :]", {"mask": torch.ones(2, 5, dtype=torch.bool)}),
    Bad(ShapeError, "same head_dim", {"q": torch.zeros(2, 3, 5, 7)}),
    Bad(ShapeError, "same length", {"v": torch.zeros(2, 3, 6, 4)}),
    Bad(ShapeError, "batch and heads", {"k": torch.zeros(1, 3, 5, 4)}),
    Bad(ShapeError, "one dtype", {"q": torch.zeros(2, 3, 5, 4, dtype=torch.float64)}),
    Bad(ShapeError, "torch tensor, not list", {"q": [1.0]}),
    Bad(ShapeError, "[batch, heads, length, head_dim]", {"q": torch.zeros(1, 2, 3, 5, 4)}),
    Bad(ShapeError, "real numbers", {"q": torch.zeros(2, 3, 5, 4, dtype=torch.complex64)}),
    Bad(ShapeError, "q must hold real numbers of one of the dtypes", {"q": torch.zeros(2, 3, 5, 4, dtype=torch.int64)}),
    Bad(ShapeError, "not torch.bool", {"v": torch.zeros(2, 3, 5, 4, dtype=torch.bool)}),
    Bad(ShapeError, "not torch.float8_e4m3fn", {"k": torch.zeros(2, 3, 5, 4, dtype=torch.float8_e4m3fn)}),
    Bad(ShapeError, "k must be a dense tensor", {"k": torch.zeros(2, 3, 5, 4).to_sparse()}),
    Bad(ShapeError, "must be on one device: q is on cpu, k is on meta", {"k": torch.zeros(2, 3, 5, 4, device="meta")}),
    Bad(ShapeError, "q and mask must be on one device", {"mask": torch.ones(5, 5, dtype=torch.bool, device="meta")}),
    Bad(ShapeError, "holds shapes without numbers", {name: torch.zeros(2, 3, 5, 4, device="meta") for name in "qkv"}),
    Bad(ShapeError, "x must have a row for each", {"mechanism": "value-bypass", "x": torch.zeros(2, 3, 6, 4)}),
    Bad(MechanismError, "did you mean 'softmax'", {"mechanism": "dot | sofmax"}),
    Bad(MechanismError, "not int", {"mechanism": 3}),
    Bad(KernelError, "did you mean 'blockwise'", {"kernel": "blokwise"}),
    Bad(KernelError, "not 'relu'", {"kernel": "sdpa", "mechanism": "dot | relu"}),
    Bad(RequestError, "takes no scale", {"mechanism": "manhattan | softmax", "scale": 2.0}),
    Bad(RequestError, "has a scale already", {"mechanism": "dot(scale=3) | softmax", "scale": 2.0}),
    Bad(RequestError, "dropout must be", {"dropout": 1.0}),
    Bad(RequestError, "causal must be True or False", {"causal": "no"}),
    Bad(ParameterError, "is missing", {"mechanism": "additive | softmax", "parameters": {}}),
    Bad(ParameterError, "has no parameter 'foo'", {"parameters": {"foo": torch.zeros(1)}}),
    Bad(
        ParameterError, "must have shape (3,)", {"mechanism": "qk-norm", "parameters": {"cosine_scale": torch.ones(2)}}
    ),
]


@pytest.mark.parametrize("bad", WRONG, ids=lambda bad: bad.says)
def test_wrong_input_gets_an_error_that_says_what_was_needed(bad: Bad) -> None:
    q, k, v = tensors(2, 3, 5, 4)
    given: dict[str, Any] = {"q": q, "k": k, "v": v, "mechanism": "dot | softmax"} | bad.change
    with pytest.raises(bad.error) as caught:
        attend(**given)
    assert bad.says in str(caught.value)


def test_a_users_own_stages_compute_and_train_like_built_in_ones(own_stages: None) -> None:
    @stage("quadratic")
    @dataclass(frozen=True)
    class Quadratic(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return (q @ k.mT).square() / math.sqrt(q.shape[-1])

    @stage("squared_relu")
    @dataclass(frozen=True)
    class SquaredRelu(Weights):
        pointwise: ClassVar[bool] = True

        def __call__(self, scores: Tensor, n: Tensor, p: Params) -> Tensor:
            return torch.relu(scores).square()

    @stage("doubled")
    @dataclass(frozen=True)
    class Doubled(Value):
        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return 2 * t

    q, k, v = (t.requires_grad_() for t in tensors(2, 2, 9, 4))
    line = "quadratic | squared_relu(divide=n) | doubled"
    out = attend(q, k, v, line, causal=True)
    scores = ((q @ k.mT).square() / 2).relu().square().tril() / torch.arange(1, 10)[:, None]
    torch.testing.assert_close(out, scores @ (2 * v))
    assert attnlab.explain(line, length=9, causal=True).kernel == "rowwise"
    out.sum().backward()
    assert all(t.grad is not None and t.grad.abs().sum() > 0 for t in (q, k, v))


def test_a_stage_derived_from_a_built_in_one_is_not_taken_for_it(own_stages: None) -> None:
    @stage("shifted")
    @dataclass(frozen=True)
    class Shifted(Dot):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return super().__call__(q, k, p) + 1

    q, k, v = tensors(1, 1, 6, 4)
    torch.testing.assert_close(attend(q, k, v, "shifted | relu"), torch.relu(q @ k.mT / 2 + 1) @ v)


@pytest.mark.parametrize("name", UNIFORM)
def test_no_keys_no_queries_and_no_batch_give_zeros_of_the_right_shape(name: str) -> None:
    q, k, v = tensors(2, 2, 5, 4)
    q.requires_grad_()
    none = attend(
        q, k[:, :, :0], v[:, :, :0], name, x=x_for(name, q, k[:, :, :0]), tokens=tokens_for(name, k[:, :, :0])
    )
    assert torch.equal(none, torch.zeros_like(q))
    none.sum().backward()
    assert attend(
        q[:, :, :0], k, v, name, causal=True, x=x_for(name, q[:, :, :0], k), tokens=tokens_for(name, k)
    ).shape == (2, 2, 0, 4)
    assert attend(q[:0], k[:0], v[:0], name, x=x_for(name, q[:0], k[:0]), tokens=tokens_for(name, k[:0])).shape == (
        0,
        2,
        5,
        4,
    )


def test_what_a_stage_of_the_users_own_learns_gets_a_finite_gradient_under_any_mask(own_stages: None) -> None:
    @stage("warm")
    @dataclass(frozen=True)
    class Warm(Weights):
        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"heat": Parameter((dims.num_heads,), 2.0, 2.0)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            heat = p["heat"][:, None, None]
            return masked_softmax(scores * heat, visible) + heat * scores.square()

    q, k, v = tensors(2, 2, 6, 4)
    mask = torch.tensor([False, True, True, True, False, True])
    grads = []
    for kernel in ("auto", "reference"):
        layer = Attention("dot | warm", num_heads=2, head_dim=4, kernel=kernel)
        layer(q, k, v, causal=True, mask=mask).square().sum().backward()
        grads.append(next(layer.parameters()).grad)
    assert grads[0] is not None
    assert grads[0].isfinite().all()
    torch.testing.assert_close(*grads)


def test_initial_values_are_the_same_wherever_they_are_drawn() -> None:
    mechanism = Mechanism.parse("additive | softmax")
    expected = initial_values(mechanism, 2, 4, 4)["additive_query"]
    with torch.inference_mode():
        initial_values(mechanism, 2, 4, 4)
    with torch.device("meta"):
        assert torch.equal(initial_values(mechanism, 2, 4, 4)["additive_query"], expected)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(initial_values(mechanism, 2, 4, 4)["additive_query"], expected)
    finally:
        torch.set_default_dtype(torch.float32)
    expected.zero_()
    assert initial_values(mechanism, 2, 4, 4)["additive_query"].abs().sum() > 0


@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu(divide=n) | bypass(alpha=0.5)"])
def test_the_output_is_computed_from_the_weights_that_come_with_it(line: str) -> None:
    q, k, v = (t.double().requires_grad_() for t in tensors(2, 2, 7, 8))
    out, w = attend_with_weights(q, k, v, line, causal=True)
    torch.testing.assert_close(out, attend(q, k, v, line, causal=True, kernel="reference"), rtol=0, atol=0)
    torch.testing.assert_close(w, attnlab.weights(q, k, line, causal=True), rtol=0, atol=0)
    (gradient,) = torch.autograd.grad(out.sum(), w)
    assert gradient.abs().sum() > 0
    out, w = attend_with_weights(q[:, :, :0], k, v, line)
    assert out.shape == (2, 2, 0, 8)
    assert w.shape == (2, 2, 0, 7)
