"""The values stages in a model: what they compute, where they act, and that a cache stays right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import InstallError
from attnlab.install import Layer
from attnlab.mechanisms import Params, Value, stage
from tests.install.models import HEADS, WIDTH, build, tokens, twin, with_loss


def widened(model: Any, name: str, amount: float) -> Any:
    """Return a copy whose value projections are W_V + amount·I: what an identity bypass must be equal to."""
    copy = twin(model)
    eye = amount * torch.eye(WIDTH)
    with torch.no_grad():
        for module in copy.modules():
            if name == "gpt2" and hasattr(module, "c_attn"):
                module.c_attn.weight[:, 2 * WIDTH :] += eye
            if name == "modernbert" and hasattr(module, "Wqkv"):
                module.Wqkv.weight[2 * WIDTH :] += eye
            for own in ("value", "v_lin", "v_proj"):
                if isinstance(getattr(module, own, None), nn.Linear):
                    getattr(module, own).weight += eye
    return copy


@pytest.mark.parametrize(
    "name", ["bert", "roberta-prelayernorm", "albert", "distilbert", "gpt2", "modernbert", "llama", "opt", "bart"]
)
def test_an_identity_bypass_is_the_projection_plus_alpha(name: str) -> None:
    original = build(name)
    model = attnlab.install(twin(original), "dot | softmax | bypass(alpha=0.3, activation=identity)")
    expected = widened(original, name, 0.3)(tokens()).last_hidden_state
    torch.testing.assert_close(model(tokens()).last_hidden_state, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_an_alpha_of_0_is_the_baseline(name: str) -> None:
    baseline = attnlab.install(build(name), "dot | softmax")
    model = attnlab.install(build(name), "dot | softmax | bypass(alpha=0)")
    assert torch.equal(model(tokens()).last_hidden_state, baseline(tokens()).last_hidden_state)


def test_gpt2_adds_to_its_values_alone_not_to_the_fused_queries_and_keys() -> None:
    model = attnlab.install(build("gpt2"), "dot | softmax | bypass(alpha=0.5)")
    fused = model.h[0].attn.c_attn
    x = torch.randn(2, 5, WIDTH)
    plain = type(fused).forward(fused, x)
    torch.testing.assert_close(fused(x)[..., : 2 * WIDTH], plain[..., : 2 * WIDTH])
    torch.testing.assert_close(fused(x)[..., 2 * WIDTH :], plain[..., 2 * WIDTH :] + 0.5 * torch.relu(x))


def test_the_input_may_be_normalised_over_its_whole_width() -> None:
    model = attnlab.install(build("bert"), "dot | softmax | bypass(alpha=0.5, input=norm)")
    projection = model.encoder.layer[0].attention.self.value
    x = torch.randn(2, 5, WIDTH)
    expected = functional.linear(x, projection.weight, projection.bias)
    expected = expected + 0.5 * torch.relu(functional.layer_norm(x, (WIDTH,)))
    torch.testing.assert_close(projection(x), expected)


@pytest.mark.parametrize("target", ["q", "k", "v"])
def test_a_bypass_acts_on_the_projection_it_names(target: str) -> None:
    model = attnlab.install(build("bert"), f"dot | softmax | bypass(on={target})")
    attention = model.encoder.layer[1].attention.self
    x = torch.randn(2, 5, WIDTH)
    for part, projection in (("q", attention.query), ("k", attention.key), ("v", attention.value)):
        plain = functional.linear(x, projection.weight, projection.bias)
        torch.testing.assert_close(projection(x), plain + 0.5 * torch.relu(x) * (part == target))


def test_several_bypasses_of_one_fused_module_all_act() -> None:
    model = attnlab.install(build("gpt2"), "dot | softmax | bypass(alpha=1, on=q) | bypass(alpha=2)")
    fused = model.h[0].attn.c_attn
    x = torch.randn(1, 3, WIDTH)
    q, k, v = (fused(x) - type(fused).forward(fused, x)).split(WIDTH, -1)
    torch.testing.assert_close(q, torch.relu(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(v, 2 * torch.relu(x), rtol=1e-4, atol=1e-5)
    assert not k.any()


def test_layers_are_named_by_their_number() -> None:
    model = attnlab.install(build("gpt2"), "dot | softmax | bypass(layers=1)")
    assert ["forward" in vars(block.attn.c_attn) for block in model.h] == [False, True]
    with pytest.raises(InstallError, match=r"names layer 2, but the model's layers are 0 to 1"):
        attnlab.install(build("gpt2"), "dot | softmax | bypass(layers=1-3)")
    with pytest.raises(InstallError, match="no single number"):
        attnlab.install(build("albert"), "dot | softmax | bypass(layers=0)")


@pytest.mark.parametrize("line", ["dot | softmax | bypass(alpha=0.5)", "dot | softmax | bypass(alpha=0.5, on=q)"])
def test_grouped_key_heads_refuse_a_bypass_of_another_width(line: str) -> None:
    if "on=q" in line:
        attnlab.install(build("llama grouped"), line)
        return
    with pytest.raises(InstallError, match=r"32 wide and the projection 16 \(key heads are grouped\)"):
        attnlab.install(build("llama grouped"), line)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # when it is imported
def test_a_fused_layout_other_than_taken_for_is_noticed() -> None:
    model = attnlab.install(build("gpt-bigcode"), "value-bypass")
    with pytest.raises(InstallError, match="another way than queries, keys, values"):
        model(tokens())


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama grouped"])
def test_unit_values_have_length_1(name: str) -> None:
    model = attnlab.install(build(name), "dot | softmax | unit_values")
    seen: list[Tensor] = []
    layer = next(m for m in model.modules() if hasattr(m, "attnlab")).attnlab
    layer.register_forward_pre_hook(lambda _, args: seen.append(args[2]))
    model(tokens())
    torch.testing.assert_close(seen[0].norm(dim=-1), torch.ones(seen[0].shape[:3]))


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama grouped", "bart", "albert"])
def test_value_residual_mixes_in_the_first_layers_values(name: str) -> None:
    model = attnlab.install(build(name), "dot | softmax | value_residual(own=0.25, first=0.75, learn=false)")
    plain = attnlab.install(build(name), "dot | softmax")
    values: dict[str, list[Tensor]] = {"mixed": [], "plain": []}
    for key, watched in (("mixed", model), ("plain", plain)):
        for module in watched.modules():
            if isinstance(module, Layer) and "encoder_attn" not in module.stack:
                module.register_forward_pre_hook(lambda _, args, key=key: values[key].append(args[2]))
    model(tokens())
    plain(tokens())
    torch.testing.assert_close(values["mixed"][0], values["plain"][0])
    assert not torch.allclose(values["mixed"][1], values["plain"][1], atol=1e-3)


def test_value_residual_is_its_equation() -> None:
    model = attnlab.install(build("gpt2"), "dot | softmax | value_residual(own=0.25, first=0.75, learn=false)")
    values: list[Tensor] = []
    for block in model.h:
        fused = block.attn.c_attn
        fused.register_forward_pre_hook(lambda module, args: values.append(type(module).forward(module, *args)))
        block.attn.attnlab.register_forward_pre_hook(lambda _, args: values.append(args[2]))
    model(tokens())
    first, mixed_first, second, mixed_second = values
    heads = [v[..., 2 * WIDTH :].unflatten(-1, (HEADS, -1)).transpose(1, 2) for v in (first, second)]
    torch.testing.assert_close(mixed_first, heads[0])
    torch.testing.assert_close(mixed_second, 0.25 * heads[1] + 0.75 * heads[0])


def test_the_first_layers_values_carry_their_gradient() -> None:
    model = with_loss("gpt2")
    attnlab.install(model, "dot | softmax | value_residual(own=0, first=1, learn=false)")
    model(tokens(), labels=tokens()).loss.backward()
    values = [block.attn.c_attn.weight.grad[:, 2 * WIDTH :] for block in model.transformer.h]
    assert values[0].any()
    assert not values[1].any()


LINES = ["value-bypass", "value-bypass-learned", "unit-values", "value-residual", "dot | softmax | bypass(on=k)"]


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_cached_decoding_gives_what_the_whole_sequence_gives(name: str, line: str) -> None:
    model = attnlab.install(build(name, AutoModelForCausalLM), line)
    with torch.no_grad():
        whole = model(tokens()).logits
        first = model(tokens()[:, :5], use_cache=True)
        rest = model(tokens()[:, 5:], past_key_values=first.past_key_values).logits
    torch.testing.assert_close(torch.cat([first.logits, rest], 1), whole, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("own_stages")
def test_a_stage_of_ones_own_acts_in_a_model() -> None:
    @stage("blend")
    @dataclass(frozen=True)
    class Blend(Value):
        """Half of the input, half of the first values."""

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            return t + 0.5 * x + 0.5 * first

    model = attnlab.install(build("gpt2"), "dot | softmax | blend")
    before = attnlab.install(build("gpt2"), "dot | softmax")
    assert not torch.allclose(model(tokens()).last_hidden_state, before(tokens()).last_hidden_state, atol=1e-3)


def test_a_cache_of_fixed_size_is_no_other_layout() -> None:
    model: Any = build("gpt2", transformers.AutoModelForCausalLM).eval()
    attnlab.install(model, "dot | softmax | bypass(alpha=0.5)")
    ids = torch.tensor([[5, 6, 7]])
    more: dict[str, Any] = {"max_new_tokens": 4, "do_sample": False, "attention_mask": torch.ones_like(ids)}
    fixed = model.generate(ids, cache_implementation="static", **more)
    assert torch.equal(fixed, model.generate(ids, **more))
