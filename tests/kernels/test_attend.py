"""The way in: what `attend`, `weights` and `Attention` promise, and what they say about wrong input."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab import Attention, attend, weights
from attnlab.errors import AttnlabError, KernelError, MechanismError, ParameterError, RequestError, ShapeError
from attnlab.kernels import initial_values
from attnlab.mechanisms import CATALOG, Dims, Mechanism, Parameter, Params, Score, Value, Weights, masked_softmax, stage
from attnlab.mechanisms.scores import Dot

KEYS = torch.tensor([[0, 1, 2], [1, 1, 2], [-1, 1, -2], [0, -1, -2]])
VALUES = torch.tensor([[3, 2, -4], [3, -2, 4], [3, 2, 0], [3, 2, 0]])
QUERY = torch.tensor([-2, 1, 1])


def tensors(*shape: int, seed: int = 0) -> list[Tensor]:
    return list(torch.randn(3, *shape, generator=torch.Generator().manual_seed(seed)).unbind(0))


@pytest.mark.parametrize("num_axes", [1, 2, 3, 4])
def test_hard_attention_picks_the_value_of_the_best_key(num_axes: int) -> None:
    q = QUERY.reshape((1,) * (num_axes - 1) + (3,))
    out = attend(q, KEYS, VALUES, "dot | argmax", scale=1)
    assert out.shape == q.shape
    assert out.flatten().tolist() == [3, 2, -4]


def test_the_baseline_is_torchs_own_attention() -> None:
    q, k, v = tensors(2, 3, 17, 8)
    for causal in (False, True):
        expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        for kernel in ("sdpa", "blockwise", "rowwise", "reference"):
            torch.testing.assert_close(attend(q, k, v, causal=causal, kernel=kernel), expected)


def test_weights_times_values_is_the_output() -> None:
    q, k, v = tensors(2, 2, 9, 4)
    for name, entry in CATALOG.items():
        if not entry.mechanism.values and not entry.mechanism.output:
            w = weights(q, k, name, causal=True)
            torch.testing.assert_close(w @ v, attend(q, k, v, name, causal=True), msg=name)


def test_causal_weights_see_no_future_and_divide_by_what_is_seen() -> None:
    q, k, _ = tensors(1, 1, 5, 4)
    w = weights(q, k, "dot | identity(divide=n)", causal=True)
    scores = q @ k.mT / 2
    for i in range(5):
        torch.testing.assert_close(w[0, 0, i, : i + 1], scores[0, 0, i, : i + 1] / (i + 1))
        assert (w[0, 0, i, i + 1 :] == 0).all()


def test_division_at_the_key_divides_by_its_position() -> None:
    q, k, v = tensors(1, 1, 6, 4)
    w = weights(q, k, "cosine | identity(divide=n, divide_at=key)", causal=True)
    plain = weights(q, k, "cosine | identity", causal=True)
    torch.testing.assert_close(w, plain / torch.arange(1, 7))
    torch.testing.assert_close(attend(q, k, v, "cosine | identity(divide=n, divide_at=key)", causal=True), w @ v)


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


def test_one_query_against_a_cache_sees_all_of_it() -> None:
    q, k, v = tensors(2, 2, 12, 8)
    for name in CATALOG:
        if "mask(" not in CATALOG[name].line:
            whole = attend(q, k, v, name, causal=True)
            last = attend(q[:, :, -1:], k, v, name, causal=True)
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


def test_a_module_has_the_parameters_and_trains_them() -> None:
    module = Attention("additive | softmax | gate", num_heads=2, head_dim=4)
    assert {name: tuple(p.shape) for name, p in module.named_parameters()} == {
        "additive_query": (2, 4, 4),
        "additive_key": (2, 4, 4),
        "additive_out": (2, 4),
        "gate_weight": (2, 4, 4),
    }
    q, k, v = tensors(1, 2, 5, 4)
    module(q, k, v, causal=True).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())
    again = Attention("additive | softmax | gate", num_heads=2, head_dim=4, seed=5)
    again.load_state_dict(module.state_dict())
    assert torch.equal(again(q, k, v), module(q, k, v))
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
    Bad(ShapeError, "x must have the shape", {"mechanism": "value-bypass", "x": torch.zeros(2, 3, 6, 4)}),
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


@pytest.mark.parametrize("name", CATALOG)
def test_no_keys_no_queries_and_no_batch_give_zeros_of_the_right_shape(name: str) -> None:
    q, k, v = tensors(2, 2, 5, 4)
    q.requires_grad_()
    none = attend(q, k[:, :, :0], v[:, :, :0], name)
    assert torch.equal(none, torch.zeros_like(q))
    none.sum().backward()
    assert attend(q[:, :, :0], k, v, name, causal=True).shape == (2, 2, 0, 4)
    assert attend(q[:0], k[:0], v[:0], name).shape == (0, 2, 5, 4)


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


def test_a_stage_of_the_wrong_shape_is_named(own_stages: None) -> None:
    @stage("short")
    @dataclass(frozen=True)
    class Short(Score):
        def __call__(self, q: Tensor, k: Tensor, p: Params) -> Tensor:
            return (q @ k.mT)[..., :-1]

    q, k, v = tensors(2, 2, 6, 4)
    with pytest.raises(ShapeError, match="'short' must return"):
        attend(q, k, v, "short | softmax")
    with pytest.raises(ShapeError, match="this layer has 3 heads of 4; q has 2 of 4"):
        Attention("dot | softmax", num_heads=3, head_dim=4)(q, k, v)


@pytest.mark.parametrize("scale", [-3.0, 0.0, -0.001, 5.0])
def test_a_scale_of_any_sign_is_a_scale(scale: float) -> None:
    q, k, v = tensors(1, 2, 300, 8)
    line = f"dot(scale={scale}) | softmax"
    mask = torch.arange(300) < 280
    for given in (None, mask):
        expected = attend(q, k, v, line, causal=True, mask=given, kernel="reference")
        for kernel in ("sdpa", "blockwise"):
            found = attend(q, k, v, line, causal=True, mask=given, kernel=kernel)
            torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


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
