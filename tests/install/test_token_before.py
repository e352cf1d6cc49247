"""Stages that request `before`, the projection of the token before: with caches, padding, windows, and in chains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, StaticCache

import attnlab
from attnlab.errors import InstallError, MechanismError
from attnlab.mechanisms import Dims, Features, Parameter, Params, Value, stage
from tests.install.models import LENGTH, build, tokens

pytestmark = pytest.mark.usefixtures("stages")


@pytest.fixture
def stages(own_stages: None) -> None:
    @stage("previous_value")
    @dataclass(frozen=True)
    class PreviousValue(Value):
        """V + λ_h·V of the token before."""

        uses_x: ClassVar[bool] = False
        uses_first: ClassVar[bool] = False

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"share": Parameter((dims.num_heads,), 0.2, 0.9)}

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params, *, before: Tensor) -> Tensor:
            return t + p["share"][:, None, None] * before

    @stage("step_of_values")
    @dataclass(frozen=True)
    class StepOfValues(Value):
        """V − tanh(V of the token before); it declares nothing."""

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params, *, before: Tensor) -> Tensor:
            return t - before.tanh()

    @stage("sum_of_keys")
    @dataclass(frozen=True)
    class SumOfKeys(Features):
        """q and k plus those of the token before."""

        acts_before_positions: ClassVar[bool] = True

        def __call__(self, t: Tensor, side: str, p: Params, *, before: Tensor) -> Tensor:
            return t + before

    @stage("conv_of_values")
    @dataclass(frozen=True)
    class ConvOfValues(Value):
        """w0 v_t + w1 v_(t-1) + w2 v_(t-2) per channel, as a grouped convolution over tokens."""

        uses_x: ClassVar[bool] = False
        uses_first: ClassVar[bool] = False
        num_before: ClassVar[int] = 2

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"taps": Parameter((dims.num_key_heads, dims.value_dim, 3), 0.2, 0.9)}

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params, *, before: Tensor) -> Tensor:
            return torch.einsum("bhnsd,hds->bhnd", torch.cat([t[..., None, :], before], -2), p["taps"])

    @stage("mean_of_keys")
    @dataclass(frozen=True)
    class MeanOfKeys(Features):
        """Keys averaged with those of some tokens before."""

        acts_before_positions: ClassVar[bool] = True
        sides = ("k",)

        reach: int = 3

        @property
        def num_before(self) -> int:  # type: ignore[override]
            return self.reach

        def __call__(self, t: Tensor, side: str, p: Params, *, before: Tensor) -> Tensor:
            return (t + before.sum(-2)) / (1 + before.shape[-2])


LINES = (
    "dot | softmax | previous_value",
    "dot | softmax | previous_value | step_of_values",
    "dot | softmax | sum_of_keys | shift(keys)",
    "dot | softmax | shift(keys) | previous_value | unit_values | value_residual",
    "dot | softmax | previous_value | value_embedding",
    "dot | softmax | conv_of_values",
    "dot | softmax | shift(keys) | mean_of_keys(reach=1) | conv_of_values | previous_value",
)


def decode(model: Any, ids: Tensor, sizes: list[int], cache: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the logits if the model gets some tokens at a time."""
    parts, end = [], 0
    for piece in ids.split(sizes, 1):
        end += piece.shape[1]
        more = {} if mask is None else {"attention_mask": mask[:, :end], "position_ids": count(mask)[:, :end]}
        more = {name: t[:, -piece.shape[1] :] if name == "position_ids" else t for name, t in more.items()}
        output = model(piece, past_key_values=cache, use_cache=True, **more)
        parts.append(output.logits)
        cache = output.past_key_values
    return torch.cat(parts, 1)


def count(mask: Tensor) -> Tensor:
    return (mask.cumsum(1) - 1).clamp(min=0)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@torch.no_grad()
def test_a_cache_and_padding_give_the_outputs_of_the_whole_sequence(kind: str, line: str) -> None:
    model: Any = attnlab.install(build(kind, AutoModelForCausalLM), line)
    ids = tokens()
    whole = model(ids, use_cache=False).logits
    for sizes in ([1] * LENGTH, [3, LENGTH - 3], [1, 2, LENGTH - 3]):
        torch.testing.assert_close(decode(model, ids, sizes), whole, rtol=1e-4, atol=1e-5)
        static = StaticCache(config=model.config, max_cache_len=LENGTH + 3)
        torch.testing.assert_close(decode(model, ids, sizes, static), whole, rtol=1e-4, atol=1e-5)
    left = torch.cat([tokens(3, 4), ids], 1)
    mask = torch.cat([torch.zeros(3, 4, dtype=torch.long), torch.ones_like(ids)], 1)
    padded = model(left, attention_mask=mask, position_ids=count(mask)).logits
    torch.testing.assert_close(padded[:, 4:], whole, rtol=1e-4, atol=1e-5)
    for sizes in ([4, LENGTH], [6, LENGTH - 2], [LENGTH + 3, 1]):
        found = decode(model, left, sizes, mask=mask)[:, 4:]
        torch.testing.assert_close(found, whole, rtol=1e-4, atol=1e-5)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    found = model(ids, attention_mask=mask).logits
    torch.testing.assert_close(found[mask.bool()], whole[mask.bool()], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("line", [*LINES[:3], *LINES[5:]])
@pytest.mark.parametrize("kind", ["mistral window", "gemma3 windows"])
@torch.no_grad()
def test_a_cache_of_a_window_still_holds_the_token_before(kind: str, line: str) -> None:
    line = line.removesuffix(" | step_of_values")  # it may use x, which is wider than grouped values
    model: Any = attnlab.install(build(kind, AutoModelForCausalLM), line)
    ids = tokens()
    whole = model(ids, use_cache=False).logits
    for sizes in ([1] * LENGTH, [LENGTH - 1, 1], [5, LENGTH - 5]):
        torch.testing.assert_close(decode(model, ids, sizes), whole, rtol=1e-4, atol=1e-5)
    mask = torch.ones_like(ids)
    mask[0, :2] = 0
    whole = model(ids, attention_mask=mask, position_ids=count(mask)).logits
    found = decode(model, ids, [5] + [1] * (LENGTH - 5), mask=mask)
    torch.testing.assert_close(found[mask.bool()], whole[mask.bool()], rtol=1e-4, atol=1e-5)


def test_one_layer_computes_the_equation_and_attend_the_same() -> None:
    model: Any = attnlab.install(build("bert"), "dot | softmax | previous_value")
    held: dict[str, Tensor] = {}
    module = model.encoder.layer[1].attention.self
    module.value.register_forward_hook(lambda _, args, out: held.update(x=args[0], v=out))
    model(tokens())
    bare = torch.nn.functional.linear(held["x"], module.value.weight, module.value.bias)
    share = module.attnlab.previous_value_share
    shifted = torch.cat([torch.zeros_like(bare[:, :1]), bare[:, :-1]], 1).unflatten(-1, (len(share), -1))
    torch.testing.assert_close(held["v"], bare + (share[:, None] * shifted).flatten(2))
    q, k, v = torch.randn(3, 2, 2, 6, 4)
    mask = torch.tensor([[True] * 6, [False] * 2 + [True] * 4])[:, None, None]
    before = torch.cat([torch.zeros(2, 2, 1, 4), v[:, :, :-1]], 2)
    before[1, :, 2] = 0
    parameters = {"previous_value_share": torch.tensor([0.5, 0.25])}
    found = attnlab.attend(q, k, v, "dot | softmax | previous_value", mask=mask, parameters=parameters)
    expected = attnlab.attend(q, k, v + torch.tensor([0.5, 0.25])[:, None, None] * before, mask=mask)
    torch.testing.assert_close(found, expected)


def test_several_tokens_before_are_a_causal_convolution_that_padding_interrupts() -> None:
    q, k, v, taps = *torch.randn(3, 2, 2, 7, 4), torch.randn(2, 4, 3)
    mask = torch.tensor([[True] * 7, [False] * 2 + [True] * 5])[:, None, None]
    held = v.masked_fill(~mask.mT, 0)
    channels = torch.nn.functional.pad(held.transpose(2, 3).flatten(1, 2), (2, 0))  # [b h·d n]
    conv = torch.nn.functional.conv1d(channels, taps.flip(-1).flatten(0, 1)[:, None], groups=8)
    expected = attnlab.attend(q, k, conv.unflatten(1, (2, 4)).transpose(2, 3), mask=mask)
    line, parameters = "dot | softmax | conv_of_values", {"conv_of_values_taps": taps}
    torch.testing.assert_close(attnlab.attend(q, k, v, line, mask=mask, parameters=parameters), expected)


@pytest.mark.parametrize("line", LINES[5:])
@torch.no_grad()
def test_several_tokens_before_do_not_cross_the_border_of_packed_sequences(line: str) -> None:
    model: Any = attnlab.install(build("llama"), line)
    for num_first in (1, 2, 4):
        positions = torch.cat([torch.arange(num_first), torch.arange(LENGTH - num_first)])[None]
        packed = model(tokens(1), position_ids=positions, use_cache=False).last_hidden_state
        second = model(tokens(1)[:, num_first:]).last_hidden_state
        torch.testing.assert_close(packed[:, num_first:], second, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_generation_with_and_without_a_cache_agrees() -> None:
    model: Any = attnlab.install(build("gpt2", AutoModelForCausalLM), LINES[-1])
    options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    first, second = (model.generate(tokens(2), use_cache=is_cached, **options) for is_cached in (True, False))
    assert torch.equal(first, second)


@pytest.mark.parametrize("number", [0, True, 1.5])
def test_a_number_of_tokens_before_that_is_none_is_refused(number: Any) -> None:
    def call(self: Any, t: Tensor, x: Tensor, first: Tensor, p: Params, *, before: Tensor) -> Tensor:
        return t

    def without(self: Any, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
        return t

    def declare(method: Any) -> None:
        stage("odd")(dataclass(frozen=True)(type("Odd", (Value,), {"num_before": number, "__call__": method})))

    with pytest.raises(MechanismError, match="declares num_before, and its call does not request these tokens"):
        declare(without)
    declare(call)
    q = torch.randn(1, 2, 4, 4)
    with pytest.raises(MechanismError, match="num_before of 'odd' is how many tokens before each its call reads"):
        attnlab.attend(q, q, q, "dot | softmax | odd")


@pytest.mark.parametrize("line", ["dot | softmax | previous_value", LINES[-1]])
def test_the_audits_of_a_line_and_of_a_model_pass(line: str) -> None:
    assert attnlab.audit(line, checks=["leak", "prefix", "padding", "equivalences", "value path"]).passed
    model = attnlab.install(build("gpt2", AutoModelForCausalLM), line)
    assert attnlab.audit(model, checks=["leak", "prefix", "padding"]).passed


def test_combinations_that_a_cache_cannot_serve_are_refused() -> None:
    said = r"'previous_value' needs what 'value_embedding' computes.*put 'previous_value' before it in the line"
    with pytest.raises(InstallError, match=said):
        attnlab.install(build("gpt2"), "dot | softmax | value_embedding | previous_value")
    mixed = "dot | softmax | value_residual"
    with pytest.raises(
        InstallError, match="'previous_value' needs the value of the token before, and 'value_residual'"
    ):
        attnlab.install(build("gpt2"), f"{mixed} @ 0; {mixed} | previous_value @ 1")
    with pytest.raises(InstallError, match="cross-attention"):
        attnlab.install(build("bart"), LINES[0])


@torch.no_grad()
def test_layers_may_differ_in_the_tokens_they_project_again() -> None:
    mixed = "dot | softmax | value_residual"
    for line in (f"{mixed} @ 0; {mixed} | shift(keys) @ 1", f"{mixed} | shift(keys) @ 0; {mixed} @ 1"):
        model: Any = attnlab.install(build("gpt2", AutoModelForCausalLM), line)
        whole = model(tokens(), use_cache=False).logits
        torch.testing.assert_close(decode(model, tokens(), [3, LENGTH - 3]), whole, rtol=1e-4, atol=1e-5)
