"""`describe` returns the line of what a model does, and a model with its own line is the model, in fp64."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, T5GemmaConfig, T5GemmaForConditionalGeneration

import attnlab
from attnlab.errors import AttnlabWarning, InstallError
from tests.install.families import (
    BRIDGED,
    FAMILIES,
    GROUPED,
    T5,
    TOLERANCE,
    Family,
    build_family,
    compute_logits,
    generate,
)
from tests.install.models import HEADS, SHARED, WIDTH, build, padding, tokens
from tests.kernels.published import fp32_as_fp64


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with fp32_as_fp64():
        yield


def describe(model: Any, remark: str | None) -> Any:
    """Describe a model that describe warns of with this remark, or does not warn of."""
    if remark is None:
        with warnings.catch_warnings():
            warnings.simplefilter("error", AttnlabWarning)
            return attnlab.describe(model)
    with pytest.warns(AttnlabWarning, match=remark):
        return attnlab.describe(model)


ALL = FAMILIES | BRIDGED


@pytest.mark.parametrize("family", ALL.values(), ids=ALL)
def test_describe_returns_the_line_of_a_family(family: Family) -> None:
    line = describe(build_family(family), family.remark)
    assert line == attnlab.Mechanism.parse(family.line), str(line)


@pytest.mark.parametrize("family", ALL.values(), ids=ALL)
def test_a_model_with_its_own_line_is_the_model(family: Family) -> None:
    original = build_family(family)
    installed = attnlab.install(copy.deepcopy(original), describe(original, family.remark))
    for side in ("none", "left", "right"):
        expected = compute_logits(original, side)
        assert float((compute_logits(installed, side) - expected).abs().max()) <= TOLERANCE, side
    assert attnlab.mechanism_of(installed) == describe(installed, family.remark)


@pytest.mark.parametrize("name", [name for name in ALL if "bert" not in name])
def test_a_model_with_its_own_line_generates_the_same_with_a_cache(name: str) -> None:
    family = ALL[name]
    original = build_family(family)
    installed = attnlab.install(copy.deepcopy(original), describe(original, family.remark))
    expected, expected_logits = generate(original)
    found, logits = generate(installed)
    assert torch.equal(found, expected)
    assert float((logits - expected_logits).abs().max()) <= TOLERANCE


def compute_gradients(model: Any) -> dict[str, torch.Tensor]:
    """Return the gradients of a sum of logits by parameter, those of a mechanism left out."""
    inputs = {"decoder_input_ids": tokens()[:, :5]} if model.config.is_encoder_decoder else {}
    logits = model(input_ids=tokens(), attention_mask=padding("right"), **inputs).logits
    model.zero_grad()
    (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits))[:, :4].sum().backward()
    named = model.named_parameters()
    return {name: p.grad for name, p in named if ".attnlab." not in name and p.grad is not None}


@pytest.mark.parametrize("name", ["llama", "gpt_oss", "gemma2", "t5", "bloom", "mpt", "falcon", "falcon alibi"])
def test_a_model_with_its_own_line_has_the_gradients_of_the_model(name: str) -> None:
    family = ALL[name]
    original = build_family(family)
    installed = attnlab.install(copy.deepcopy(original), describe(original, family.remark))
    expected, found = compute_gradients(original), compute_gradients(installed)
    # What a parameter of the mechanism replaced is compared in test_takeover.py.
    replaced = {key for key in expected if key.endswith((".sinks", "relative_attention_bias.weight"))}
    assert found.keys() == expected.keys() - replaced
    for key, gradient in found.items():
        scale = max(1.0, float(expected[key].abs().max()))
        assert float((gradient - expected[key]).abs().max()) <= TOLERANCE * scale, key


def test_an_installed_mechanism_is_described_with_what_it_leaves_in_the_model() -> None:
    model = build_family(FAMILIES["mistral window"])
    attnlab.install(model, "cosine | relu(divide=n) | window(9)")
    assert str(attnlab.describe(model)) == "cosine | relu(divide=n) | window(4) | rope | heads(kv=2)"
    attnlab.install(model, "dot | softmax1 | nope | heads(kv=1)")
    assert str(attnlab.describe(model)) == "dot | softmax1 | window(4) | nope | heads(kv=1)"
    model = build_family(FAMILIES["qwen3"])
    attnlab.install(model, "dot | relu")
    assert str(attnlab.describe(model)) == "dot | relu | norm(rms, gain=channel) | rope | heads(kv=2)"
    attnlab.install(model, "dot | relu | norm(l2)")
    assert str(attnlab.describe(model)) == "dot | relu | norm(l2) | rope | heads(kv=2)"


@pytest.mark.parametrize(
    ("kind", "changes", "remark"),
    [
        ("olmo2", {"num_key_value_heads": 2}, "its norm of queries"),
        ("hunyuan_v1_dense", {"num_key_value_heads": 2, "head_dim": 8}, "its module 'query_layernorm'"),
        ("cohere", {"num_key_value_heads": 2}, "turns other channels"),
        ("qwen3", {"num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-5}, "its norm of keys"),
    ],
)
def test_what_no_stage_writes_is_named_and_left_to_the_model(kind: str, changes: dict[str, Any], remark: str) -> None:
    family = Family(kind, "", changes, remark=remark)
    original = build_family(family)
    installed = attnlab.install(copy.deepcopy(original), describe(original, remark))
    expected = compute_logits(original, "left")
    assert float((compute_logits(installed, "left") - expected).abs().max()) <= TOLERANCE


def test_a_bias_of_two_dimensions_is_refused_by_name() -> None:
    model = build_family(Family("udop", "", T5, AutoModel))
    for act in (attnlab.describe, lambda model: attnlab.install(model, "dot | softmax")):
        with pytest.raises(InstallError, match="adds a position bias to the scores of UdopModel"):
            act(model)


def test_layers_without_rotation_have_no_positions() -> None:
    family = Family("smollm3", "", {"num_key_value_heads": HEADS, "no_rope_layers": [1, 0]})
    assert (
        str(describe(build_family(family), None)) == "dot | softmax | rope(base=2000000) @ 0; dot | softmax | nope @ 1"
    )


def test_a_model_whose_attention_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(InstallError, match=r"\(GPTJAttention\) computes attention by itself"):
        attnlab.describe(build("gptj", AutoModelForCausalLM))


def test_a_model_with_cross_attention_keeps_its_rotation_and_windows() -> None:
    part = {**SHARED, **GROUPED, "sliding_window": 4}
    config = T5GemmaConfig(encoder=dict(part), decoder={**part, "cross_attention_hidden_size": WIDTH}, vocab_size=64)
    config.bos_token_id = 1
    head: Any = T5GemmaForConditionalGeneration
    original = head._from_config(config, attn_implementation="eager").double().eval()
    with pytest.warns(AttnlabWarning, match=r"its rotation, in a model with cross-attention .* 'window\(4\)', in a"):
        line = attnlab.describe(original)
    assert str(line) == "dot(scale=0.0625) | cap(50) | softmax | heads(kv=2)"
    installed = attnlab.install(copy.deepcopy(original), line)
    expected = compute_logits(original, "left")
    assert float((compute_logits(installed, "left") - expected).abs().max()) <= TOLERANCE
