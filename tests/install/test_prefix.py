"""A prefix: what attention gives with it, by hand and by transformers' own cache; padding, generation, saving."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, DynamicCache

import attnlab
from attnlab.errors import InstallError, RequestError
from attnlab.install import attention_layers, prefix_of, set_prefix
from attnlab.mechanisms import CATALOG
from tests.install.models import HEADS, LENGTH, WIDTH, build, num_layers_for, padding, pair, tokens, twin, with_loss

PREFIX, HEAD_DIM = 5, WIDTH // HEADS


def with_prefix(model: Any, line: str = "dot | softmax", *, length: int = PREFIX, scale: float = 1.0) -> Any:
    """Install a mechanism and a prefix whose numbers are as large as those they stand before."""
    attnlab.install(model, line)
    set_prefix(model, length, seed=3)
    with torch.no_grad():
        for parameter in prefixes(model).values():
            parameter.mul_(scale / 0.02)
    return model


def prefixes(model: Any) -> dict[str, Any]:
    return {name: p for name, p in model.named_parameters() if name.rpartition(".")[2].startswith("prefix_")}


def pairs_of(model: Any) -> list[tuple[Tensor, Tensor]]:
    return [(layer.prefix_keys, layer.prefix_values) for _, _, layer in attention_layers(model)]  # type: ignore[misc]


def cached_logits(original: Any, prefix: list[tuple[Tensor, Tensor]], mask: Tensor | None) -> Tensor:
    """Ask transformers' own eager attention with the same prefix as the past, and positions that do not count it."""
    cache = DynamicCache()
    for index, (keys, values) in enumerate(prefix):
        cache.update(keys.expand(3, -1, -1, -1), values.expand(3, -1, -1, -1), index)
    whole = None if mask is None else torch.cat([torch.ones(3, PREFIX, dtype=mask.dtype), mask], 1)
    positions = torch.arange(LENGTH).expand(3, -1)
    logits: Tensor = original(tokens(), past_key_values=cache, attention_mask=whole, position_ids=positions).logits
    return logits


@pytest.mark.parametrize("side", ["none", "right", "left"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "llama grouped", "opt", "qwen3"])
def test_it_is_as_transformers_own_cache_with_the_same_keys_and_values(name: str, side: str) -> None:
    original = build(name, AutoModelForCausalLM).double()
    model = with_prefix(twin(original))
    mask = padding(side)
    rows = torch.ones(3, LENGTH, dtype=torch.bool) if mask is None else mask.bool()
    positions = torch.arange(LENGTH).expand(3, -1)
    found = model(tokens(), attention_mask=mask, position_ids=positions).logits[rows]
    prefix = [(keys.detach().requires_grad_(), values.detach().requires_grad_()) for keys, values in pairs_of(model)]
    expected = cached_logits(original, prefix, mask)[rows]
    # Everything is fp64, but eager attention takes the softmax of all but GPT-2 in fp32.
    near: Any = {} if name == "gpt2" else {"rtol": 1e-4, "atol": 2e-6}
    torch.testing.assert_close(found, expected, **near)
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(0), dtype=found.dtype)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    for (keys, values), own in zip(prefix, pairs_of(model), strict=True):
        torch.testing.assert_close(own[0].grad, keys.grad, **near)
        torch.testing.assert_close(own[1].grad, values.grad, **near)


def by_hand(module: Any, x: Tensor, prefix: tuple[Tensor, Tensor], mask: Tensor, line: str) -> Tensor:
    """Compute BERT's attention from its projections: each head's keys with the prefix before them."""
    q, k, v = (
        getattr(module, name)(x).unflatten(-1, (HEADS, -1)).transpose(1, 2) for name in ("query", "key", "value")
    )
    k, v = (torch.cat([own.expand(3, -1, -1, -1), t], 2) for own, t in zip(prefix, (k, v), strict=True))
    seen = torch.cat([torch.ones(3, PREFIX, dtype=torch.bool), mask.bool()], 1)[:, None, None, :]
    if line == "dot | softmax":
        scores = (q @ k.mT) / HEAD_DIM**0.5
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    else:
        scores = torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).mT
        weights = scores.relu().masked_fill(~seen, 0) / seen.sum(-1, keepdim=True)
    out: Tensor = (weights @ v).transpose(1, 2).flatten(2)
    return out


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu(divide=n)"])
def test_it_is_as_attention_by_hand(line: str, side: str) -> None:
    model = with_prefix(build("bert").double(), line)
    mask = padding(side)
    assert mask is not None
    seen: list[tuple[Any, Tensor, Tensor]] = []
    for _, module, _ in attention_layers(model):
        module.register_forward_hook(lambda m, args, out: seen.append((m, args[0], out[0])))
    model(tokens(), attention_mask=mask)
    assert len(seen) == 2
    for (module, x, out), prefix in zip(seen, pairs_of(model), strict=True):
        torch.testing.assert_close(out, by_hand(module, x, prefix, mask, line))


ORDERED = [name for name, entry in CATALOG.items() if "forget" in entry.line or "delta" in entry.line]
"""Mechanisms that follow the order of the tokens, to which a prefix does not belong."""


@pytest.mark.parametrize("line", ORDERED)
def test_what_follows_the_order_of_the_tokens_takes_none(line: str) -> None:
    with pytest.raises(InstallError, match="follows the order of the tokens"):
        with_prefix(build("gpt2", num_hidden_layers=num_layers_for(line)), line)


@pytest.mark.parametrize("line", [name for name in CATALOG if name not in ORDERED])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_every_mechanism_takes_one_and_padding_changes_nothing(name: str, line: str) -> None:
    num_layers = num_layers_for(line)
    model = with_prefix(build(name, num_hidden_layers=num_layers), line)
    together = model(tokens(), attention_mask=padding("right")).last_hidden_state[1, :6]
    alone = model(tokens()[1:2, :6]).last_hidden_state[0]
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    together.square().sum().backward()
    grads = {name: p.grad for name, p in prefixes(model).items()}
    assert len(grads) == 2 * num_layers
    for parameter, grad in grads.items():
        assert grad is not None
        assert grad.isfinite().all()
        # argmax has no gradient for scores, and none for values that are never the largest.
        assert grad.any() or "argmax" in str(attnlab.mechanism_of(model)), parameter


@pytest.mark.parametrize("name", ["mistral window", "modernbert", "gemma3 windows", "llama grouped"])
def test_no_window_hides_it(name: str) -> None:
    model = with_prefix(build(name))
    shown = model(tokens(), attention_mask=padding("right"), output_attentions=True).attentions
    assert all(bool((weights[..., :PREFIX] > 0).all()) for weights in shown)


def test_every_packed_sequence_sees_it() -> None:
    model = with_prefix(build("llama", use_cache=False))  # transformers knows packing only without a cache
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4]])
    packed = model(tokens(1), position_ids=positions).last_hidden_state
    alone = [model(part).last_hidden_state for part in tokens(1).split([4, 5], 1)]
    torch.testing.assert_close(packed, torch.cat(alone, 1))


def test_it_changes_what_comes_out_and_without_it_all_is_as_before() -> None:
    model = build("bert")
    expected = model(tokens()).last_hidden_state
    attnlab.install(model, "dot | softmax")
    assert prefix_of(model) is None
    set_prefix(model, PREFIX)
    assert prefix_of(model) == PREFIX
    assert not torch.allclose(model(tokens()).last_hidden_state, expected, atol=1e-3)
    attnlab.uninstall(model)
    assert not prefixes(model)
    assert prefix_of(model) is None
    torch.testing.assert_close(model(tokens()).last_hidden_state, expected)
    attnlab.install(model, "dot | softmax")
    set_prefix(model, PREFIX)
    attnlab.install(model, "cosine | softmax")
    assert prefix_of(model) is None


@pytest.mark.parametrize("side", ["none", "left"])
@pytest.mark.parametrize("line", ["dot | softmax", "cosine | relu(divide=n) | gate"])
@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma3 windows"])
def test_a_cache_never_holds_it_and_generation_is_the_same(name: str, line: str, side: str) -> None:
    model = with_prefix(build(name, AutoModelForCausalLM), line)
    mask = torch.ones(3, LENGTH, dtype=torch.long) if padding(side) is None else padding(side)
    settings: Any = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    with_cache, without = (
        model.generate(tokens(), attention_mask=mask, use_cache=use_cache, **settings) for use_cache in (True, False)
    )
    assert torch.equal(with_cache, without)
    assert model(tokens(), use_cache=True).past_key_values.get_seq_length() == LENGTH


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_fused_projection_is_still_proved_by_its_values(name: str) -> None:
    model = with_prefix(build(name), "dot | softmax | bypass(alpha=0.5)")
    model(tokens())
    assert all(layer.is_layout_checked == (name == "gpt2") for _, _, layer in attention_layers(model))
    plain = build("gpt2", AutoModelForSequenceClassification)
    attnlab.install(plain, "dot | softmax | bypass(alpha=0.5)")
    set_prefix(plain, LENGTH)  # as long as the input: keys twice as many are not taken for the projected ones
    plain(tokens()[:1])
    assert all(layer.is_layout_checked for _, _, layer in attention_layers(plain))


def test_the_start_is_of_the_seed_and_the_layers_name_alone() -> None:
    starts = []
    for line, head in (("dot | softmax", None), ("additive | softmax", AutoModelForSequenceClassification)):
        model = build("bert") if head is None else build("bert", head)
        attnlab.install(model, line, seed=9)
        state = torch.get_rng_state()
        set_prefix(model, PREFIX, seed=3)
        assert torch.equal(torch.get_rng_state(), state)
        starts.append(pairs_of(model))
    for one, other in zip(*starts, strict=True):
        assert torch.equal(one[0], other[0])
        assert torch.equal(one[1], other[1])
    (first, second) = starts[0]
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], second[0])
    set_prefix(model, PREFIX, seed=4)
    assert not torch.equal(pairs_of(model)[0][0], starts[1][0][0])


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    model = with_prefix(with_loss("gpt2"))
    attnlab.save(model, tmp_path / "with")
    loaded = attnlab.load(tmp_path / "with")
    assert prefix_of(loaded) == PREFIX
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)
    plain = with_loss("gpt2")
    attnlab.install(plain, "dot | softmax")
    attnlab.save(plain, tmp_path / "without")
    assert prefix_of(attnlab.load(tmp_path / "without")) is None


def test_mixed_precision_and_checkpointing_work() -> None:
    model = with_prefix(with_loss("gpt2", use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)).train()
    found = []
    for is_on in (False, True):
        if is_on:
            model.gradient_checkpointing_enable()
        model.zero_grad()
        model(tokens(), labels=tokens()).loss.backward()
        found.append({name: p.grad.clone() for name, p in prefixes(model).items()})
    for name, grad in found[0].items():
        assert torch.equal(grad, found[1][name])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(tokens(), labels=tokens()).loss
    loss.backward()
    assert loss.isfinite()


def test_the_weights_shown_have_the_prefix_first() -> None:
    model = with_prefix(build("bert"))
    (first, *_) = model(tokens(), attention_mask=padding("right"), output_attentions=True).attentions
    assert first.shape == (3, HEADS, LENGTH, PREFIX + LENGTH)
    assert bool((first[1, :, :, PREFIX + 6 :] == 0).all())
    assert bool((first[..., :PREFIX] > 0).all())


def test_what_has_no_place_for_one_is_refused() -> None:
    with pytest.raises(InstallError, match=r"no mechanism is installed in this BertModel; attnlab.install"):
        set_prefix(build("bert"), 4)
    for model in (attnlab.install(pair(), "dot | softmax"), attnlab.install(build("bart"), "dot | softmax")):
        with pytest.raises(InstallError, match=r"has cross-attention .* use a model without cross-attention"):
            set_prefix(model, 4)
    model = attnlab.install(build("bert"), "dot | softmax")
    for length in (0, -1, 2.0, True, "4"):
        with pytest.raises(RequestError, match="the length of a prefix must be a whole number from 1 up, not"):
            set_prefix(model, length)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"seed must be a whole number, not 0\.5"):
        set_prefix(model, 4, seed=0.5)  # type: ignore[arg-type]
    outer = build("bert", AutoModelForSequenceClassification)
    attnlab.install(outer.base_model, "dot | softmax")
    with pytest.raises(InstallError, match="was installed in another model, around it or inside; give that one"):
        set_prefix(outer, 4)


@pytest.mark.parametrize(("name", "heads"), [("gpt2", HEADS), ("llama grouped", 2), ("distilbert", HEADS)])
def test_it_has_two_numbers_a_place_layer_and_key_head_dimension(name: str, heads: int) -> None:
    model = attnlab.install(build(name), "dot | softmax")
    before = sum(p.numel() for p in model.parameters())
    set_prefix(model, 7)
    assert sum(p.numel() for p in model.parameters()) - before == 2 * 7 * 2 * heads * HEAD_DIM
