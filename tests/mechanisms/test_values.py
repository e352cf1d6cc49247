"""The value path: the bypass and its exact limits, unit values, the residual of the first layer's values."""

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from torch import Tensor

from attnlab.mechanisms import Dims, Mechanism, Value
from attnlab.mechanisms.values import Bypass, UnitValues, ValueResidual

from .strategies import stages

SHAPE = (2, 3, 4, 5)  # b h k d


def tensors(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Draw t, x and first."""
    generator = torch.Generator().manual_seed(seed)
    t, x, first = (torch.randn(SHAPE, generator=generator, dtype=torch.float64) for _ in range(3))
    return t, x, first


def parse(line: str) -> Value:
    (value,) = Mechanism.parse(line).values
    return value


ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "silu": lambda x: x / (1 + math.exp(-x)),
    "identity": lambda x: x,
    "abs": abs,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("alpha", [0.5, -2, 1])
def test_bypass_adds_alpha_times_the_activation(activation: str, alpha: float) -> None:
    t, x, first = tensors()
    added = x.clone().apply_(ACTIVATIONS[activation])
    got = parse(f"bypass(alpha={alpha}, activation={activation})")(t, x, first, {})
    torch.testing.assert_close(got, t + alpha * added, rtol=1e-14, atol=1e-14)


def test_bypass_is_half_a_relu_unless_said() -> None:
    t, x, first = tensors()
    assert torch.equal(parse("bypass")(t, x, first, {}), t + 0.5 * x.clamp(min=0))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("line", ["bypass(alpha=0)", "bypass(alpha=0, input=norm)", "bypass(alpha=0, learn=true)"])
def test_bypass_without_alpha_is_exactly_the_baseline(line: str, activation: str) -> None:
    t, x, first = tensors()
    stage = parse(line.replace("alpha=0", f"alpha=0, activation={activation}"))
    p = {"alpha": torch.zeros(3, dtype=torch.float64)}
    assert torch.equal(stage(t, x, first, p), t)


def test_bypass_by_identity_is_exactly_alpha_on_the_diagonal() -> None:
    """x(W + αI) split into heads is xW split into heads, plus α·x split into heads."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 4, 15, generator=generator, dtype=torch.float64)
    W = torch.randn(15, 15, generator=generator, dtype=torch.float64)

    def heads(y: Tensor) -> Tensor:
        return y.view(2, 4, 3, 5).transpose(1, 2)

    t = heads(x @ W)
    got = Bypass(alpha=0.7, activation="identity")(t, heads(x), t, {})
    expected = heads(x @ (W + 0.7 * torch.eye(15, dtype=torch.float64)))
    torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-13)


def test_the_normed_input_is_normed_over_the_whole_width() -> None:
    t, x, first = tensors()
    got = Bypass(alpha=1, activation="identity", input="norm")(t, x, first, {}) - t
    token = x[1, :, 2].flatten()  # every head of one token
    expected = (token - token.mean()) / (token.var(correction=0) + 1e-5).sqrt()
    torch.testing.assert_close(got[1, :, 2].flatten(), expected, rtol=1e-12, atol=1e-12)


def test_a_learned_alpha_is_one_a_head_and_starts_where_said() -> None:
    stage = parse("bypass(alpha=0.25, learn=true, per=head)")
    (declared,) = stage.parameters(Dims(3, 5, 5)).values()
    assert (declared.shape, declared.low, declared.high, declared.has_weight_decay) == ((3,), 0.25, 0.25, False)
    t, x, first = tensors()
    alpha = torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64)
    got = stage(t, x, first, {"alpha": alpha})
    torch.testing.assert_close(got, t + alpha.view(3, 1, 1) * x.relu(), rtol=0, atol=0)
    assert Bypass().parameters(Dims(3, 5, 5)) == {}


@pytest.mark.parametrize("target", ["v", "q", "k"])
def test_bypass_says_which_tensor_it_changes(target: str) -> None:
    assert parse(f"bypass(on={target})").target == target


@given(stages(Bypass, moderate=True))
def test_where_and_when_a_bypass_acts_does_not_change_what_it_does(stage: Bypass) -> None:
    t, x, first = tensors()
    plain = Bypass(stage.alpha, activation=stage.activation, input=stage.input, learn=stage.learn)
    p = {"alpha": torch.full((3,), 0.3, dtype=torch.float64)}
    assert torch.equal(stage(t, x, first, p), plain(t, x, first, p))


def test_unit_values_have_length_one_and_their_direction() -> None:
    t, x, first = tensors()
    got = UnitValues()(t, x, first, {})
    torch.testing.assert_close(got.norm(dim=-1), torch.ones(SHAPE[:3], dtype=torch.float64))
    torch.testing.assert_close(got * t.norm(dim=-1, keepdim=True), t)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_value_of_zero_stays_zero_with_a_finite_gradient(dtype: torch.dtype) -> None:
    t = torch.zeros(SHAPE, dtype=dtype).requires_grad_()
    got = UnitValues()(t, t, t, {})
    got.sum().backward()
    assert torch.equal(got, torch.zeros(SHAPE, dtype=dtype))
    assert t.grad is not None
    assert t.grad.isfinite().all()


def test_value_residual_mixes_in_the_first_layer() -> None:
    t, x, first = tensors()
    fixed = parse("value_residual(own=0.75, first=-2, learn=false)")
    torch.testing.assert_close(fixed(t, x, first, {}), 0.75 * t - 2 * first, rtol=0, atol=0)
    assert fixed.parameters(Dims(3, 5, 5)) == {}


def test_value_residual_learns_unless_told_not_to() -> None:
    stage = parse("value_residual(own=0.75)")
    declared = stage.parameters(Dims(3, 5, 5))
    assert {name: (p.shape, p.low, p.high, p.has_weight_decay) for name, p in declared.items()} == {
        "own": ((3,), 0.75, 0.75, False),
        "first": ((3,), 0.5, 0.5, False),
    }
    t, x, first = tensors()
    own, other = torch.tensor([1.0, 0.0, 2.0]).double(), torch.tensor([0.0, 1.0, -1.0]).double()
    got = stage(t, x, first, {"own": own, "first": other})
    assert torch.equal(got[:, 0], t[:, 0])
    assert torch.equal(got[:, 1], first[:, 1])
    torch.testing.assert_close(got[:, 2], 2 * t[:, 2] - first[:, 2], rtol=0, atol=0)


@pytest.mark.parametrize(
    "stage",
    [
        Bypass(learn=True, activation="gelu"),
        Bypass(input="norm", activation="silu"),
        UnitValues(),
        ValueResidual(),
    ],
    ids=str,
)
def test_gradients_are_right(stage: Value) -> None:
    t, x, first = (tensor[:1, :, :2].clone().requires_grad_() for tensor in tensors(seed=2))
    names = list(stage.parameters(Dims(3, 5, 5)))
    p = [torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64).requires_grad_() for _ in names]

    def call(t: Tensor, x: Tensor, first: Tensor, *values: Tensor) -> Tensor:
        return stage(t, x, first, dict(zip(names, values, strict=True)))

    assert torch.autograd.gradcheck(call, (t, x, first, *p))


def test_value_embedding_adds_a_row_of_its_table_for_each_token() -> None:
    t, x, first = tensors()
    tokens = torch.arange(t.shape[0] * t.shape[2]).reshape(t.shape[0], -1) % 6
    table = torch.randn(3, 6, 5, dtype=torch.float64)
    fixed = parse("value_embedding(scale=2, learn=false)")
    got = fixed(t, x, first, {"table": table}, tokens=tokens)
    for b, h, n in itertools.product(*map(range, t.shape[:3])):
        torch.testing.assert_close(got[b, h, n], t[b, h, n] + 2 * table[h, tokens[b, n]])
    neutral = fixed.neutral()
    assert neutral is not None
    assert torch.equal(neutral(t, x, first, {"table": table}, tokens=tokens), t)


def test_value_embedding_starts_small_with_gradients_to_both() -> None:
    stage = parse("value_embedding")
    declared = stage.parameters(Dims(3, 5, 4, vocab_size=1000))
    assert {name: p.shape for name, p in declared.items()} == {"table": (3, 1000, 4), "scale": (3,)}
    p = {name: each.draw(name, torch.Generator().manual_seed(0)).requires_grad_() for name, each in declared.items()}
    assert p["scale"].tolist() == [0.5] * 3
    assert float(p["table"].detach().std()) == pytest.approx(0.02, rel=0.05)
    t = torch.zeros(1, 3, 2, 4)
    stage(t, t, t, p, tokens=torch.tensor([[7, 999]])).square().sum().backward()
    gradients = {name: value.grad for name, value in p.items()}
    assert gradients["scale"] is not None
    assert gradients["table"] is not None
    assert gradients["scale"].all()
    assert gradients["table"].abs().sum((0, 2)).nonzero().flatten().tolist() == [7, 999]


def test_value_embedding_refuses_negative_ids_instead_of_counting_from_the_end() -> None:
    t = torch.zeros(1, 3, 1, 4)
    p = {"table": torch.zeros(3, 6, 4), "scale": torch.ones(3)}
    with pytest.raises((IndexError, RuntimeError), match=r"-100|out of range"):
        parse("value_embedding")(t, t, t, p, tokens=torch.tensor([[-100]]))
