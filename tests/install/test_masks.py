"""No model sees the future, and every other pattern a model asks for is honoured exactly or refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from transformers import AttentionInterface, AutoModelForCausalLM, PreTrainedModel, StaticCache
from transformers.masking_utils import AttentionMaskInterface, bidirectional_mask_function, sdpa_mask

import attnlab
from attnlab.errors import InstallError
from attnlab.install.masks import CAUSAL, MaskRule, make_mask, read_mask
from tests.install.models import LENGTH, SMALL, build, padding, tokens, twin

RELU = "cosine | relu(divide=n)"


def sees_the_future(model: PreTrainedModel) -> bool:
    """Tell whether a later token changes what an earlier one gives."""
    changed = tokens()
    changed[:, -1] = (changed[:, -1] + 1) % 64
    with torch.no_grad():
        before, after = model(tokens()).last_hidden_state, model(changed).last_hidden_state
    return not torch.equal(before[:, :-1], after[:, :-1])


@pytest.fixture
def registered() -> Any:
    """Register a name with transformers, and forget it afterwards."""
    names: list[str] = []

    def add(attention: Any, mask: Any | None) -> str:
        names.append(f"trap{len(names)}")
        AttentionInterface.register(names[-1], attention)
        if mask is not None:
            AttentionMaskInterface.register(names[-1], mask)
        return names[-1]

    yield add
    for name in names:
        AttentionInterface._global_mapping.pop(name)
        AttentionMaskInterface._global_mapping.pop(name, None)


def bare(module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **_: Any) -> tuple[Tensor, None]:
    """Attend with the mask that comes and nothing else, as a first try does."""
    mask = None if mask is None else mask if mask.dtype == torch.bool else mask == 0
    return attnlab.attend(q, k, v, "dot | softmax", mask=mask).transpose(1, 2), None


@pytest.mark.parametrize("name", ["gpt2", "llama", "opt", "mistral window"])
def test_the_silent_leak_is_there_without_our_handling_and_gone_with_it(name: str, registered: Any) -> None:
    model = build(name)
    model.config._attn_implementation = registered(bare, None)
    assert sees_the_future(model), "transformers hands out a mask without a mask function now: simplify the interface"
    model.config._attn_implementation = registered(bare, sdpa_mask)
    if name != "mistral window":
        assert sees_the_future(model), "sdpa_mask no longer skips the causal mask"
    model.config._attn_implementation = "eager"
    attnlab.install(model, "dot | softmax")
    assert not sees_the_future(model)


REFUSED = {
    ("qwen3", "value-bypass"), ("gemma3 windows", "value-bypass"),
    ("gpt-neox", "value-bypass"), ("gpt-neox", "value-residual"),
}  # fmt: skip
"""Values stages where key heads are grouped, or projections interleaved."""


@pytest.mark.parametrize("line", ["dot | softmax", RELU, "cottention", "additive", "value-bypass", "value-residual"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert decoder", "opt", "qwen3", "gemma3 windows", "gpt-neox"])
def test_no_mechanism_sees_the_future_in_a_causal_model(name: str, line: str) -> None:
    if (name, line) in REFUSED:
        with pytest.raises(InstallError):
            attnlab.install(build(name), line)
        return
    model = attnlab.install(build(name), line)
    assert isinstance(model, PreTrainedModel)
    assert not sees_the_future(model)


def test_an_encoder_sees_both_ways() -> None:
    assert sees_the_future(attnlab.install(build("bert"), RELU))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "modernbert", "mistral window"])
def test_padding_changes_nothing_for_real_tokens(name: str, side: str) -> None:
    model = attnlab.install(build(name), RELU)
    mask = padding(side)
    assert mask is not None
    real = mask[1].bool()
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        padded = model(tokens(), attention_mask=mask, position_ids=positions).last_hidden_state[1, real]
        alone = model(tokens()[1:2, real]).last_hidden_state[0]
    torch.testing.assert_close(padded, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("line", ["dot | softmax", RELU, "dot | softmax | shift(keys)", "dot | softmax | forget"])
def test_packed_sequences_do_not_see_each_other(line: str) -> None:
    model = attnlab.install(build("llama"), line)
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
    with torch.no_grad():
        packed = model(tokens(1), position_ids=positions, use_cache=False).last_hidden_state
        second = model(tokens(1)[:, 4:]).last_hidden_state
    torch.testing.assert_close(packed[:, 4:], second, rtol=1e-4, atol=1e-5)


def test_the_delta_rule_refuses_packed_sequences_and_takes_windows_and_padding() -> None:
    line = "dot(scale=1) | identity | norm(l2) | delta"
    model = attnlab.install(build("llama"), line)
    with pytest.raises(InstallError, match="packed sequences"):
        model(tokens(1), position_ids=torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]]), use_cache=False)
    for side in ("right", "left"):
        model(tokens(), attention_mask=padding(side))
        attnlab.install(build("mistral window"), line)(tokens(), attention_mask=padding(side))


@pytest.mark.parametrize("line", ["dot | softmax", RELU])
def test_a_static_cache_gives_what_a_growing_one_gives(line: str) -> None:
    model = attnlab.install(build("llama grouped", AutoModelForCausalLM), line)
    cache = StaticCache(config=model.config, max_cache_len=16)
    with torch.no_grad():
        whole = model(tokens()).logits
        parts = [
            model(tokens()[:, part], past_key_values=cache).logits for part in (slice(0, 4), slice(4, 8), slice(8, 9))
        ]
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-5)


def test_a_mask_of_ones_own_is_taken_as_it_is() -> None:
    original = build("gpt2")
    model = attnlab.install(twin(original), "dot | softmax")
    pairs = torch.rand(3, 1, LENGTH, LENGTH, generator=torch.Generator().manual_seed(0)) > 0.4
    pairs |= torch.eye(LENGTH, dtype=torch.bool)
    bias = torch.zeros(pairs.shape).masked_fill(~pairs, torch.finfo(torch.float32).min)
    expected = original(tokens(), attention_mask=bias).last_hidden_state
    for mask in (pairs, bias, bias.clamp(min=-1e9)):
        torch.testing.assert_close(
            model(tokens(), attention_mask=mask).last_hidden_state, expected, rtol=1e-4, atol=1e-5
        )


def test_a_bias_on_the_scores_is_refused() -> None:
    model = attnlab.install(build("gpt2"), "dot | softmax")
    bias = torch.randn(1, 1, LENGTH, LENGTH)
    with pytest.raises(InstallError, match="adds a bias to its scores"):
        model(tokens(), attention_mask=bias)


def test_mask_after_acts_in_a_causal_model_padded_or_not() -> None:
    plain, leaking = build("gpt2"), attnlab.install(build("gpt2"), "dot | softmax | mask(after)")
    assert sees_the_future(leaking)
    mask = padding("right")
    with torch.no_grad():
        leaked, proper = (m(tokens(), attention_mask=mask).last_hidden_state for m in (leaking, plain))
    assert not torch.allclose(leaked[1, :6], proper[1, :6], atol=1e-3)


@pytest.mark.parametrize("name", ["mistral window", "gemma3 windows"])
def test_mask_after_is_refused_where_a_window_replaces_the_causal_rule(name: str) -> None:
    model = attnlab.install(build(name), "dot | softmax | mask(after)")
    with pytest.raises(InstallError, match=r"'mask\(after\)' acts on the causal mask.*sliding window"):
        model(tokens())


def test_a_window_longer_than_the_text_is_no_window() -> None:
    model = attnlab.install(build("mistral window", sliding_window=64), "dot | softmax | mask(after)")
    for side in ("none", "right"):
        model(tokens(), attention_mask=padding(side))


def test_the_causal_rule_and_padding_are_kept_apart() -> None:
    keys = torch.tensor([[True, True, False]])
    for plain in (make_mask(1, 3, 3), make_mask(1, 3, 3, attention_mask=torch.ones(1, 3, dtype=torch.bool))):
        # Causal whatever the module says of itself, and known to hide nothing without being read.
        assert plain is not None
        assert (plain.dtype, plain.shape, plain.stride()) == (CAUSAL, (1, 1, 1, 3), (0, 0, 0, 0))
        assert read_mask(plain, torch.nn.Module(), is_causal=False) == MaskRule(True)
    padded = make_mask(1, 3, 3, attention_mask=keys)
    assert padded is not None
    assert padded.dtype == CAUSAL
    assert padded.shape == (1, 1, 1, 3)
    both_ways = make_mask(
        1, 3, 3, attention_mask=keys, mask_function=bidirectional_mask_function,
        allow_is_causal_skip=False, allow_is_bidirectional_skip=True,
    )  # fmt: skip
    assert both_ways is not None
    assert (both_ways.dtype, both_ways.shape) == (torch.bool, (1, 1, 1, 3))
    for exact in (make_mask(1, 3, 3, allow_is_causal_skip=False), make_mask(1, 2, 5, q_offset=torch.tensor(1))):
        assert exact is not None
        assert exact.dtype == torch.bool
        assert exact.shape[2] > 1


def test_a_mask_that_cannot_be_meant_is_refused() -> None:
    silent = nn.Linear(1, 1)
    with pytest.raises(InstallError, match="does not say whether it is causal"):
        read_mask(None, silent, None)
    with pytest.raises(InstallError, match=r"a mask of shape \(2, 3\)"):
        read_mask(torch.ones(2, 3, dtype=torch.bool), silent, None)
    with pytest.raises(InstallError, match="combines the causal mask with another one"):
        read_mask(torch.ones(1, 1, 3, 3, dtype=CAUSAL), silent, None)
    with pytest.raises(InstallError, match="booleans or floats"):
        read_mask(torch.ones(1, 1, 3, 3, dtype=torch.int64), silent, None)


def test_a_decoder_whose_attention_does_not_call_itself_causal_sees_no_future() -> None:
    torch.manual_seed(0)
    config = transformers.BigBirdPegasusConfig(**SMALL, attention_type="original_full")
    auto: Any = transformers.AutoModelForCausalLM
    model = auto.from_config(config).eval()
    assert not any(getattr(m, "is_causal", False) for n, m in model.named_modules() if n.endswith("self_attn"))
    ids = torch.randint(3, 48, (1, 9), generator=torch.Generator().manual_seed(0))
    changed = torch.cat([ids[:, :-1], (ids[:, -1:] + 1) % 45 + 3], 1)
    original = model(ids).logits
    attnlab.install(model, "dot | softmax")
    assert torch.allclose(model(ids).logits, original, atol=1e-5)
    assert torch.equal(model(ids).logits[:, :-1], model(changed).logits[:, :-1])
