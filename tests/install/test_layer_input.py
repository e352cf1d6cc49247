"""Stages that need the layer's input, or the token before, in models: padded, and with every kind of cache."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    BertConfig,
    DynamicCache,
    GPT2Config,
    LlamaConfig,
    StaticCache,
    T5Config,
)

import attnlab
from attnlab.errors import InstallError
from attnlab.install import set_prefix
from tests.sampling import is_sampled

Causal: Any = AutoModelForCausalLM
Masked: Any = AutoModelForMaskedLM
Pair: Any = AutoModelForSeq2SeqLM

LENGTH, PADDED, CACHED = 12, 4, 7
LINES = (
    "dot | softmax | forget",
    "dot | identity | forget(per=channel) | head_norm",
    "dot(scale=1) | identity | forget | norm(l2) | delta | head_norm | gate(per=channel)",
    "dot | softmax | norm(rms, gain=channel) | exclusive(alpha=1) | gate",
    "dot | softmax | norm(l2, gain=head) | shift(keys)",
    "dot | softmax | bypass(alpha=0.5, on=k) | shift(keys, share=0.25)",
    "dot | softmax | differential",
    "dot | softmax | talking_heads",
    "dot | identity(divide=sum) | feature(taylor)",
    "dot | softmax | window(5) | forget | rope",
)
SIZES: Any = {"vocab_size": 50, "bos_token_id": 0, "eos_token_id": 1}
COMMON: Any = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4}


def make_gpt2() -> Any:
    return Causal.from_config(
        GPT2Config(n_layer=2, n_embd=32, n_head=4, n_positions=64, initializer_range=0.3, **SIZES)
    )


def make_llama(num_key_heads: int = 2) -> Any:
    return Causal.from_config(
        LlamaConfig(**COMMON, **SIZES, num_key_value_heads=num_key_heads, initializer_range=0.3)
    )  # fmt: skip


def make_bert() -> Any:
    return Masked.from_config(BertConfig(**COMMON, vocab_size=50, initializer_range=0.3))


MODELS: dict[str, Callable[[], Any]] = {"gpt2": make_gpt2, "llama": make_llama, "bert": make_bert}


def install(kind: str, line: str) -> Any:
    """Return a model in fp64 with a line installed, whose learned parameters have moved."""
    torch.manual_seed(0)
    model = MODELS[kind]() if "on=k" not in line or kind != "llama" else make_llama(4)
    attnlab.install(model, line)
    draw = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if ".attnlab." in name:
            parameter.data += 0.2 * torch.randn(parameter.shape, generator=draw)
    return model.double().eval()


def draw_batch() -> dict[str, Tensor]:
    """Return two sequences, the second with padding on its left."""
    ids = torch.randint(2, 50, (2, LENGTH), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(ids)
    mask[1, :PADDED] = 0
    return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)}


CASES = [
    (kind, line) for first, kind in enumerate(MODELS) for second, line in enumerate(LINES) if is_sampled(first, second)
]


@torch.no_grad()
@pytest.mark.parametrize(("kind", "line"), CASES)
def test_padding_changes_nothing(kind: str, line: str) -> None:
    model, batch = install(kind, line), draw_batch()
    whole = model(**batch).logits
    alone = model(input_ids=batch["input_ids"][1:, PADDED:]).logits
    torch.testing.assert_close(whole[1:, PADDED:], alone, rtol=0, atol=1e-10)


CACHES: dict[str, Callable[[Any], Any]] = {
    "dynamic": lambda config: DynamicCache(),
    "dynamic of a config": lambda config: DynamicCache(config=config),
    "static": lambda config: StaticCache(config=config, max_cache_len=20),
}


@torch.no_grad()
@pytest.mark.parametrize(("kind", "line"), [case for case in CASES if case[0] != "bert"])
def test_every_cache_gives_what_the_whole_sequence_gives(kind: str, line: str) -> None:
    model, batch = install(kind, line), draw_batch()
    whole = model(**batch).logits
    for name, make in CACHES.items():
        cache, parts = make(model.config), []
        for start, stop in ((0, CACHED), *((at, at + 1) for at in range(CACHED, LENGTH - 2)), (LENGTH - 2, LENGTH)):
            parts.append(
                model(
                    input_ids=batch["input_ids"][:, start:stop], attention_mask=batch["attention_mask"][:, :stop],
                    position_ids=batch["position_ids"][:, start:stop], past_key_values=cache, use_cache=True,
                ).logits
            )  # fmt: skip
        difference = (torch.cat(parts, 1) - whole).abs()
        difference[1, :PADDED] = 0
        assert difference.max() < 1e-10, name


@torch.no_grad()
def test_a_cache_can_be_reordered_and_cropped() -> None:
    model, batch = install("gpt2", "dot | softmax | forget | shift(keys)"), draw_batch()
    ids = batch["input_ids"][:1]
    cache = DynamicCache()
    model(input_ids=torch.cat([ids, ids.flip(1)])[:, :CACHED], past_key_values=cache, use_cache=True)
    cache.reorder_cache(torch.LongTensor([1, 0]))
    cache.crop(-2)
    rest = torch.cat([ids.flip(1), ids])[:, CACHED - 2 : LENGTH]
    logits = model(input_ids=rest, past_key_values=cache, use_cache=True).logits
    expected = model(input_ids=torch.cat([ids.flip(1), ids])).logits[:, CACHED - 2 :]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)


@torch.no_grad()
@pytest.mark.parametrize("line", [LINES[0], LINES[2], LINES[4]])
def test_beams_are_those_without_a_cache(line: str) -> None:
    model, ids = install("gpt2", line), draw_batch()["input_ids"][:1, :5]
    options = {"max_new_tokens": 6, "num_beams": 3, "do_sample": False, "pad_token_id": 0}
    found, expected = (model.generate(ids, use_cache=cached, **options) for cached in (True, False))
    assert torch.equal(found, expected)


@pytest.mark.parametrize(("kind", "line"), [case for case in CASES if "on=k" not in case[1]])
def test_every_learned_parameter_gets_a_gradient_and_uninstall_restores_the_model(kind: str, line: str) -> None:
    torch.manual_seed(0)
    plain = MODELS[kind]().double()
    model, batch = copy.deepcopy(plain), draw_batch()
    attnlab.install(model, line)
    model.double()
    model(**batch, labels=batch["input_ids"]).loss.backward()
    learned = {name: p for name, p in model.named_parameters() if ".attnlab." in name}
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in learned.values())
    attnlab.uninstall(model)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(**batch).logits, plain.eval()(**batch).logits, rtol=0, atol=0)


@torch.no_grad()
def test_a_saved_model_computes_the_same(tmp_path: Any) -> None:
    line = "dot | softmax | forget | norm(rms, gain=channel) | gate(per=channel) | differential"
    model, batch = install("llama", line), draw_batch()
    attnlab.save(model, tmp_path / "model")
    loaded: Any = attnlab.load(tmp_path / "model")
    loaded = loaded.double().eval()
    assert str(attnlab.mechanism_of(loaded)) == str(attnlab.mechanism_of(model))
    torch.testing.assert_close(loaded(**batch).logits, model(**batch).logits, rtol=0, atol=1e-12)


def test_gradient_checkpointing_computes_the_same_gradients() -> None:
    line, batch = "dot | softmax | forget | shift(keys) | gate", draw_batch()
    gradients = []
    for is_checkpointing in (False, True):
        model = install("llama", line).train()
        if is_checkpointing:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model(**batch, labels=batch["input_ids"], use_cache=False).loss.backward()
        gradients.append([p.grad for p in model.parameters() if p.grad is not None])
    for plain, checkpointed in zip(*gradients, strict=True):
        torch.testing.assert_close(checkpointed, plain, rtol=0, atol=1e-12)


def test_what_cannot_be_installed_says_why() -> None:
    t5 = Pair.from_config(T5Config(d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, vocab_size=20))
    with pytest.raises(InstallError):
        attnlab.install(t5, "dot | softmax | delta")
    odd = Causal.from_config(GPT2Config(n_layer=1, n_embd=24, n_head=3, **SIZES))
    with pytest.raises(InstallError, match="pairs of heads, and there are 3"):
        attnlab.install(odd, "dot | softmax | differential")
    forgetting = install("gpt2", "dot | softmax | forget")
    with pytest.raises(InstallError, match="order of the tokens"):
        set_prefix(forgetting, 3)


@torch.no_grad()
def test_a_cache_of_another_mechanism_is_refused() -> None:
    model, ids = install("gpt2", "dot | softmax | forget"), draw_batch()["input_ids"]
    plain = make_gpt2().double().eval()
    cache = DynamicCache()
    plain(input_ids=ids[:, :5], past_key_values=cache, use_cache=True)
    with pytest.raises(InstallError, match="filled without this mechanism"):
        model(input_ids=ids[:, 5:], past_key_values=cache, use_cache=True)
