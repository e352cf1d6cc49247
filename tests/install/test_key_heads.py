"""heads(kv=N) in a model: narrower keys and values, the mean of each group, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import AttnlabWarning, InstallError
from attnlab.install.key_heads import rescale_new_heads
from attnlab.install.weight_parts import weight_parts
from attnlab.training.job.start import initialise
from tests.install.models import HEADS, WIDTH, build, padding, tokens, twin, with_loss

FAMILIES = (
    "bert", "bert decoder", "roberta", "camembert", "electra", "albert", "distilbert", "gpt2", "llama",
    "mistral window", "qwen3", "gemma3 windows", "granite", "bart", "phi3 fused",
)  # fmt: skip
HEAD_DIM = WIDTH // HEADS


def shapes(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("num_heads", [1, 2, 4])
def test_it_computes_what_a_llama_built_with_these_heads_computes(num_heads: int) -> None:
    built = build("llama", AutoModelForCausalLM, num_key_value_heads=num_heads).double()
    built.set_attn_implementation("sdpa")  # in fp64; the eager softmax is in fp32
    model = build("llama", AutoModelForCausalLM, seed=1).double()
    attnlab.install(model, f"dot | softmax | heads(kv={num_heads})")
    assert shapes(model) == shapes(built)
    model.load_state_dict(built.state_dict())
    for mask in (padding("none"), padding("right")):
        torch.testing.assert_close(
            model(tokens(), attention_mask=mask).logits, built(tokens(), attention_mask=mask).logits, rtol=0, atol=1e-12
        )


def test_a_new_head_is_the_mean_of_its_group() -> None:
    original = build("llama").layers[0].self_attn
    module = attnlab.install(build("llama"), "dot | softmax | heads(kv=2)").layers[0].self_attn
    heads = original.k_proj.weight.unflatten(0, (HEADS, HEAD_DIM))
    expected = torch.cat([(heads[0] + heads[1]) / 2, (heads[2] + heads[3]) / 2])
    torch.testing.assert_close(module.k_proj.weight, expected)
    assert module.k_proj.out_features == WIDTH // 2
    assert module.num_key_value_groups == 2
    assert torch.equal(module.q_proj.weight, original.q_proj.weight)


def test_a_pretrained_model_warns_that_its_heads_are_averaged() -> None:
    model = build("llama")
    model.name_or_path = model.config.name_or_path = "somewhere/pretrained"
    with pytest.warns(AttnlabWarning, match="'heads.kv=2.': each head of keys and values is the mean of 2 pretrained"):
        attnlab.install(model, "dot | softmax | heads(kv=2)")
    attnlab.uninstall(model)
    attnlab.install(model, f"dot | softmax | heads(kv={HEADS})")  # as many as it has: nothing is averaged


def test_a_fused_projection_is_narrowed_in_its_parts() -> None:
    original = build("gpt2").h[0].attn.c_attn
    attention = attnlab.install(build("gpt2"), "dot | softmax | heads(kv=1)").h[0].attn
    q, k, v = original.weight.split(WIDTH, 1)
    means = [part.unflatten(1, (HEADS, HEAD_DIM)).mean(1) for part in (k, v)]
    torch.testing.assert_close(attention.c_attn.weight, torch.cat([q, *means], 1))
    assert attention.c_attn.bias.shape == (WIDTH + 2 * HEAD_DIM,)
    assert attention.split_size == [WIDTH, HEAD_DIM, HEAD_DIM]


@pytest.mark.parametrize("line", ["dot | softmax | heads(kv=1)", "cosine | softmax | share(kv) | heads(kv=1)"])
@pytest.mark.parametrize("name", FAMILIES)
def test_taking_it_out_repeats_the_current_values(name: str, line: str) -> None:
    original = build(name).double()
    model = attnlab.install(twin(original), line)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    narrow = model(tokens()).last_hidden_state
    attnlab.install(model, "dot | softmax" if line.startswith("dot") else "cosine | softmax")
    torch.testing.assert_close(model(tokens()).last_hidden_state, narrow, rtol=0, atol=1e-12)
    attnlab.uninstall(model)
    assert shapes(model) == shapes(original)
    for module, before in zip(model.modules(), original.modules(), strict=True):
        for size in ("split_size", "num_key_value_heads", "num_key_value_groups", "out_features", "nf"):
            assert getattr(module, size, None) == getattr(before, size, None)
    assert model(tokens()).last_hidden_state.isfinite().all()


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_one_number_of_heads_replaces_another(name: str) -> None:
    model = build(name)
    for line in ("heads(kv=1)", "heads(kv=2) | share(kv)", "share(qk)", "heads(kv=4)", "heads(kv=2) | bypass(on=q)"):
        attnlab.install(model, f"dot | softmax | {line}")
        assert model(tokens()).last_hidden_state.isfinite().all()
    attnlab.uninstall(model)
    assert shapes(model) == shapes(build(name))


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_it_survives_saving_loading_and_from_pretrained(name: str, tmp_path: Path) -> None:
    model = attnlab.install(with_loss(name), "dot | softmax | heads(kv=2)")
    expected = model(tokens(), attention_mask=padding("right")).logits
    attnlab.save(model, tmp_path)
    for loaded in (attnlab.load(tmp_path), type(model).from_pretrained(tmp_path)):
        assert shapes(loaded) == shapes(model)
        assert torch.equal(loaded(tokens(), attention_mask=padding("right")).logits, expected)
        assert shapes(attnlab.uninstall(loaded)) == shapes(with_loss(name))


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_cache_holds_the_narrow_heads_and_gives_the_same_tokens(name: str) -> None:
    model = attnlab.install(with_loss(name), "dot | softmax | heads(kv=1)")
    cache = model(tokens(), use_cache=True).past_key_values
    assert cache.layers[0].keys.shape[1] == cache.layers[0].values.shape[1] == 1
    both = [
        model.generate(tokens(), attention_mask=padding("left"), max_new_tokens=5, do_sample=False, use_cache=use_cache)
        for use_cache in (True, False)
    ]
    assert torch.equal(*both)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_the_installed_model_passes_its_audit(name: str) -> None:
    audit = attnlab.audit(attnlab.install(with_loss(name), "dot | softmax | heads(kv=2)"))
    assert audit.passed, str(audit)


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        (
            "llama",
            "heads(kv=3)",
            r"must divide both the 4 query heads and the 4 heads of keys and values .*; N may be 1, 2, 4$",
        ),
        (
            "llama grouped",
            "heads(kv=4)",
            r"the 4 query heads and the 2 heads of keys .*LlamaAttention\); N may be 1, 2$",
        ),
        ("opt", "heads(kv=2)", r"OPTAttention\) uses one number of heads for both"),
        ("modernbert", "heads(kv=2)", r"narrows a part of 'Wqkv', and attnlab does not know how .* splits it"),
        ("gpt-neox", "heads(kv=2)", r"interleaved in one projection, 'query_key_value'"),
        ("llama", "heads(kv=2) | share(qk)", r"differ: q_proj 32 → 32, k_proj 32 → 16; its key heads are grouped"),
        ("bert", "heads(kv=2) | bypass", r"the input is 32 wide and the projection 16 \(key heads are grouped\)"),
    ],
)
def test_a_model_that_cannot_take_it_is_refused_and_not_changed(name: str, line: str, message: str) -> None:
    model = build(name)
    with pytest.raises(InstallError, match=message):
        attnlab.install(model, f"dot | softmax | {line}")
    assert shapes(model) == shapes(build(name))


def test_a_module_that_divides_the_narrow_projection_otherwise_is_refused_in_its_first_pass() -> None:
    model = attnlab.install(build("llama"), "dot | softmax | heads(kv=2)")
    layer = model.layers[0].self_attn.attnlab
    layer.num_key_heads = 1
    with pytest.raises(InstallError, match=r"into 2 heads of keys and values instead of 1"):
        model(tokens())


def test_adapters_come_after_it_and_go_before_it() -> None:
    model = attnlab.install(with_loss("llama"), "dot | softmax | heads(kv=2)")
    config = LoraConfig(target_modules=["q_proj", "v_proj"], r=2)
    adapted: Any = get_peft_model(model, config)
    assert adapted(tokens()).logits.isfinite().all()
    with pytest.raises(InstallError, match=r"'v_proj' of 'layers.0.self_attn' has an adapter \(peft\) of the width of"):
        attnlab.uninstall(adapted)
    attnlab.uninstall(adapted.merge_and_unload())
    with pytest.raises(InstallError, match=r"install 'heads\(kv=2\)' first, adapters after"):
        attnlab.install(get_peft_model(with_loss("llama"), config), "dot | softmax | heads(kv=2)")


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama"])
def test_arms_with_other_heads_are_paired_in_all_they_share(name: str) -> None:
    baseline = dict(weight_parts(attnlab.install(build(name), "dot | softmax")))
    arm = dict(weight_parts(attnlab.install(build(name), "dot | softmax | heads(kv=2)")))
    assert all(torch.equal(arm[part], baseline[part]) for part in baseline.keys() & arm.keys())
    assert all(part.endswith(" heads]") for part in arm.keys() - baseline.keys())
    assert len(arm) == len(baseline)
    num_narrowed = sum("2 heads" in part for part in arm)
    assert num_narrowed == {"bert": 8, "gpt2": 8, "llama": 4}[name]
    same = dict(weight_parts(attnlab.install(build(name), "dot | softmax | heads(kv=4)")))
    assert same.keys() == baseline.keys()


@pytest.mark.parametrize(("name", "part"), [("llama", "k_proj.weight[1 heads]"), ("gpt2", "c_attn.weight[k, 1 heads]")])
@pytest.mark.parametrize("line", ["heads(kv=1)", "heads(kv=1) | share(kv)"])
def test_a_new_model_starts_with_the_deviation_of_its_architecture(name: str, part: str, line: str) -> None:
    model = build(name, hidden_size=128, initializer_range=0.05) if name == "llama" else build(name, n_embd=128)
    initialise(model, 0)
    plain = attnlab.install(twin(model), "dot | softmax")
    before = {_find_place(key): tensor.std() for key, tensor in weight_parts(plain)}
    attnlab.install(model, f"dot | softmax | {line}")
    parts = {key: tensor for key, tensor in weight_parts(model) if key.endswith(part)}
    assert len(parts) == 2
    assert all(tensor.std() < 0.6 * before[_find_place(key)] for key, tensor in parts.items())
    rescale_new_heads(model)
    for key, tensor in weight_parts(model):
        if "attnlab" not in key and tensor.dim() == 2:
            torch.testing.assert_close(tensor.std(), before[_find_place(key)], rtol=0.1, atol=0)


def _find_place(key: str) -> str:
    """Return the name of a weight without its number of heads."""
    return key.replace("[1 heads]", "").replace(", 1 heads]", "]")
