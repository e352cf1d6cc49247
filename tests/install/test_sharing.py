"""share(qk), share(kv) and share(qkv): one projection, fewer parameters, one gradient."""

from __future__ import annotations

import pytest
import torch
from transformers import BertModel

import attnlab
from attnlab.errors import AttnlabWarning, InstallError
from attnlab.install import Layer
from attnlab.install.weight_parts import weight_parts
from tests.install.models import WIDTH, build, tokens, twin, with_loss

FAMILIES = ["bert", "distilbert", "gpt2", "modernbert", "llama", "opt", "bart"]


def size(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("what", "dropped"), [("qk", 1), ("kv", 1), ("qkv", 2)])
@pytest.mark.parametrize("name", FAMILIES)
def test_there_are_fewer_parameters(name: str, what: str, dropped: int) -> None:
    original = build(name)
    model = attnlab.install(twin(original), f"dot | softmax | share({what})")
    num_layers = sum(isinstance(module, Layer) for module in model.modules())
    biased = any("bias" in key and ("query" in key or "q_" in key or "c_attn" in key) for key in original.state_dict())
    assert size(original) - size(model) == dropped * num_layers * WIDTH * (WIDTH + biased)


@pytest.mark.parametrize("what", ["qkv", "kv"])
@pytest.mark.parametrize("name", FAMILIES)
def test_one_projection_serves_several_parts_and_taking_it_out_keeps_what_was_learned(name: str, what: str) -> None:
    original = build(name)
    model = attnlab.install(twin(original), f"dot | softmax | share({what})")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    shared = model(tokens()).last_hidden_state
    assert not torch.allclose(shared, original(tokens()).last_hidden_state, atol=1e-3)
    attnlab.uninstall(model)
    assert model.state_dict().keys() == original.state_dict().keys()
    assert {k: v.shape for k, v in model.state_dict().items()} == {k: v.shape for k, v in original.state_dict().items()}
    assert size(model) == size(original)
    torch.testing.assert_close(model(tokens()).last_hidden_state, shared, rtol=1e-4, atol=1e-5)


def test_the_queries_weights_are_the_ones_kept() -> None:
    original = build("gpt2")
    model = attnlab.install(twin(original), "dot | softmax | share(qk)")
    kept = model.h[0].attn.c_attn.weight
    full = original.h[0].attn.c_attn.weight
    assert torch.equal(kept, torch.cat([full[:, :WIDTH], full[:, 2 * WIDTH :]], 1))
    bert = attnlab.install(build("bert"), "dot | softmax | share(qk)").encoder.layer[0].attention.self
    assert bert.key.weight is bert.query.weight
    assert bert.value.weight is not bert.query.weight


def test_under_kv_the_keys_weights_are_the_ones_kept() -> None:
    original = build("gpt2")
    model = attnlab.install(twin(original), "dot | softmax | share(kv)")
    assert torch.equal(model.h[0].attn.c_attn.weight, original.h[0].attn.c_attn.weight[:, : 2 * WIDTH])
    bert = attnlab.install(build("bert"), "dot | softmax | share(kv)").encoder.layer[0].attention.self
    assert torch.equal(bert.key.weight, build("bert").encoder.layer[0].attention.self.key.weight)
    assert bert.value.weight is bert.key.weight
    assert bert.query.weight is not bert.key.weight
    crossed = attnlab.install(build("gpt2", add_cross_attention=True), "dot | softmax | share(kv)")
    assert crossed.h[0].crossattention.c_attn.weight.shape == (WIDTH, WIDTH)
    grouped = attnlab.install(build("llama grouped"), "dot | softmax | share(kv)")
    assert grouped.layers[0].self_attn.v_proj.weight is grouped.layers[0].self_attn.k_proj.weight


@pytest.mark.parametrize(("name", "query", "key"), [("gpt2", "weight[q]", "weight[k]"), ("bert", "query.w", "key.w")])
def test_arms_with_tied_keys_and_values_are_paired(name: str, query: str, key: str) -> None:
    baseline = dict(weight_parts(attnlab.install(build(name), "dot | softmax")))
    tied = dict(weight_parts(attnlab.install(build(name), "dot | softmax | share(kv)")))
    assert all(torch.equal(weight, baseline[part]) for part, weight in tied.items())
    assert any(query in part for part in tied)
    assert any(key in part for part in tied)
    assert {part for part in baseline if part not in tied} == {
        part for part in baseline if part.endswith("[v]") or ".value." in part
    }


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_one_gradient_is_the_sum_of_both_uses(name: str) -> None:
    model = with_loss(name)
    attnlab.install(model, "dot | softmax | share(qk)")
    unshared = attnlab.uninstall(twin(model))
    for one in (model, unshared):
        one(tokens(), labels=tokens()).loss.backward()
    if name == "gpt2":
        found = model.transformer.h[0].attn.c_attn.weight.grad
        full = unshared.transformer.h[0].attn.c_attn.weight.grad
        q, k, v = full.split(WIDTH, 1)
        expected = torch.cat([q + k, v], 1)
    else:
        found = model.bert.encoder.layer[0].attention.self.query.weight.grad
        own = unshared.bert.encoder.layer[0].attention.self
        expected = own.query.weight.grad + own.key.weight.grad
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "line", ["dot | softmax | share(qk) | bypass(alpha=0.5)", "cosine | softmax | share(qkv) | unit_values"]
)
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_sharing_goes_with_other_stages_and_comes_out_again(name: str, line: str) -> None:
    original = build(name)
    model = attnlab.install(twin(original), line)
    model(tokens())
    attnlab.install(model, "dot | softmax")
    assert not any("forward" in vars(module) for module in model.modules())


def test_widths_that_differ_are_refused() -> None:
    with pytest.raises(InstallError, match=r"q_proj 32 → 32, k_proj 32 → 16; its key heads are grouped"):
        attnlab.install(build("llama grouped"), "dot | softmax | share(qk)")
    with pytest.raises(InstallError, match=r"cannot tie c_attn and q_attn of 'h.0.crossattention'"):
        attnlab.install(build("gpt2", add_cross_attention=True), "dot | softmax | share(qk)")
    with pytest.raises(InstallError, match="interleaved"):
        attnlab.install(build("gpt-neox"), "dot | softmax | share(qk)")


def test_dropping_pretrained_weights_is_said(tmp_path: object) -> None:
    build("bert").save_pretrained(str(tmp_path))
    model = BertModel.from_pretrained(str(tmp_path))
    with pytest.warns(AttnlabWarning, match="the keys use the queries' weights"):
        attnlab.install(model, "dot | softmax | share(qk)")
    with pytest.warns(AttnlabWarning, match="the values use the keys' weights"):
        attnlab.install(model, "dot | softmax | share(kv)")
