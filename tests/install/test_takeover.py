"""What a model has of its own (sinks, a cap, norms, a relative bias) passes to the stages that replace it, and back."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.errors import AttnlabWarning, InstallError
from tests.install.families import FAMILIES, GROUPED, T5, TOLERANCE, Family, build_family, compute_logits
from tests.install.models import calm, learned, tokens
from tests.kernels.published import fp32_as_fp64


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with fp32_as_fp64():
        yield


def get(model: Any, name: str) -> Tensor:
    """Return the first parameter whose name ends so."""
    parameter: Tensor = next(p for key, p in model.named_parameters() if key.endswith(name))
    return parameter


def close(found: Tensor, expected: Tensor) -> bool:
    return found.shape == expected.shape and float((found - expected).detach().abs().max()) <= TOLERANCE


def backward(model: Any) -> None:
    inputs = {"decoder_input_ids": tokens()[:, :5]} if model.config.is_encoder_decoder else {}
    logits = model(input_ids=tokens(), **inputs).logits
    (logits * torch.linspace(-30, 30, logits.numel(), dtype=logits.dtype).view_as(logits).sin()).sum().backward()


STARTED = [
    ("gpt_oss", "softmax_sink", "sinks", lambda weight: weight),
    ("qwen3", "norm_query", "q_norm.weight", lambda weight: weight[None]),
    ("gemma3", "norm_key", "k_norm.weight", lambda weight: weight[None] + 1),
    ("t5", "relative_bias", "relative_attention_bias.weight", lambda weight: weight.T),
    ("umt5", "relative_bias", "relative_attention_bias.weight", lambda weight: weight.T),
]
"""A family, a parameter of its line, the model's weight where it starts, and how the shapes correspond."""
IDS = [name for name, *_ in STARTED]


@pytest.mark.parametrize(("name", "parameter", "weight", "read"), STARTED, ids=IDS)
def test_a_parameter_starts_at_the_models_own(name: str, parameter: str, weight: str, read: Any) -> None:
    model = build_family(FAMILIES[name])
    attnlab.install(model, attnlab.describe(model))
    assert close(get(model, parameter), read(get(model, weight)))
    assert get(model, parameter).requires_grad
    assert not get(model, weight).requires_grad


@pytest.mark.parametrize(("name", "parameter", "weight", "read"), STARTED, ids=IDS)
def test_it_has_the_gradient_of_the_models_own(name: str, parameter: str, weight: str, read: Any) -> None:
    original = build_family(FAMILIES[name])
    installed = attnlab.install(copy.deepcopy(original), attnlab.describe(original))
    backward(original)
    backward(installed)
    expected = read(get(original, weight).grad)
    expected = expected - 1 if name == "gemma3" else expected  # a gradient has no offset
    assert close(get(installed, parameter).grad, expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "parameter", "weight", "read"), STARTED, ids=IDS)
def test_uninstall_writes_trained_values_back(name: str, parameter: str, weight: str, read: Any) -> None:
    model = build_family(FAMILIES[name])
    attnlab.install(model, attnlab.describe(model))
    with torch.no_grad():
        for value in learned(model).values():
            value.add_(0.25)
    trained, values = compute_logits(model, "left"), get(model, parameter).detach().clone()
    attnlab.uninstall(model)
    assert close(compute_logits(model, "left"), trained)
    assert close(read(get(model, weight)), values)
    assert get(model, weight).requires_grad


def test_t5_shares_one_bias_per_stack_and_umt5_has_one_per_layer() -> None:
    for name, number in (("t5", 2), ("umt5", 4)):
        model = build_family(FAMILIES[name])
        attnlab.install(model, attnlab.describe(model))
        assert len(learned(model)) == number


def test_positions_of_the_model_keep_t5s_bias_and_train_it() -> None:
    original = build_family(FAMILIES["t5"])
    installed = attnlab.install(copy.deepcopy(original), "dot | softmax")
    assert close(compute_logits(installed, "left"), compute_logits(original, "left"))
    assert not learned(installed)
    backward(original)
    backward(installed)
    weight = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    assert close(get(installed, weight).grad, get(original, weight).grad)  # type: ignore[arg-type]


DROPPED = [
    ("gemma2", "dot | softmax", "its cap on scores"),
    ("gemma2", "cosine | relu(divide=n)", "its cap on scores"),
    ("gpt_oss", "dot | softmax", "its learned attention sinks"),
    ("gpt_oss", "dot | softmax1", "its learned attention sinks"),
    ("t5", "dot | softmax | nope", "its relative position bias"),
    ("t5", "dot | softmax | alibi", "its relative position bias"),
    ("t5", "dot | softmax | relative(buckets=4)", "the learned values of its relative position bias"),
    ("qwen3", "dot | softmax | norm(rms)", "the learned values of its norm of queries"),
]


@pytest.mark.parametrize(("name", "line", "words"), DROPPED)
def test_a_pretrained_model_warns_of_what_is_dropped(name: str, line: str, words: str) -> None:
    model = build_family(FAMILIES[name])
    attnlab.install(model, line)  # not pretrained: nothing that was learned is lost
    attnlab.uninstall(model)
    model.name_or_path = model.config.name_or_path = "somewhere/pretrained"
    before = compute_logits(model, "none")
    with pytest.warns(AttnlabWarning, match=words):
        attnlab.install(model, line)
    assert not close(compute_logits(model, "none"), before)
    attnlab.uninstall(model)
    assert close(compute_logits(model, "none"), before)


@pytest.mark.parametrize("name", ["gemma2", "gpt_oss", "t5", "qwen3", "llama"])
def test_a_pretrained_model_with_its_own_line_warns_of_nothing(name: str) -> None:
    model = build_family(FAMILIES[name])
    model.name_or_path = model.config.name_or_path = "somewhere/pretrained"
    with warnings.catch_warnings():
        warnings.simplefilter("error", AttnlabWarning)
        attnlab.install(model, attnlab.describe(model))


def test_without_its_stage_a_part_is_gone() -> None:
    family = FAMILIES["gemma2"]
    model = attnlab.install(build_family(family), "dot | softmax")
    uncapped = build_family(Family(family.kind, "", {**family.changes, "attn_logit_softcapping": None}))
    assert close(compute_logits(model, "left"), compute_logits(uncapped, "left"))
    capped = build_family(Family(family.kind, "", {**family.changes, "attn_logit_softcapping": 2.0}))
    attnlab.install(model, "dot | softmax | cap(2)")
    assert close(compute_logits(model, "left"), compute_logits(capped, "left"))

    model, original = build_family(FAMILIES["gpt_oss"]), build_family(FAMILIES["gpt_oss"])
    attnlab.install(model, "dot | softmax")
    for name, parameter in original.named_parameters():
        if name.endswith("sinks"):
            parameter.data.fill_(-1e4)
    assert close(compute_logits(model, "left"), compute_logits(original, "left"))

    model, original = build_family(FAMILIES["t5"]), build_family(FAMILIES["t5"])
    attnlab.install(model, "dot | softmax | nope")
    for name, parameter in original.named_parameters():
        if name.endswith("relative_attention_bias.weight"):
            parameter.data.zero_()
    assert close(compute_logits(model, "left"), compute_logits(original, "left"))


@pytest.mark.parametrize("name", ["gemma2", "gpt_oss", "qwen3", "t5"])
def test_a_model_with_its_own_line_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    options = {"dtype": "float64", **({"experts_implementation": "eager"} if name == "gpt_oss" else {})}
    load = FAMILIES[name].head.from_pretrained
    build_family(FAMILIES[name]).save_pretrained(tmp_path / "plain")
    model = load(tmp_path / "plain", **options).eval()
    attnlab.install(model, attnlab.describe(model))
    with torch.no_grad():
        for value in learned(model).values():
            value.add_(0.25)
    expected = compute_logits(model, "left")
    attnlab.save(model, tmp_path / "installed")
    loaded = load(tmp_path / "installed", **options).eval()
    assert [p.requires_grad for p in loaded.parameters()] == [p.requires_grad for p in model.parameters()]
    assert attnlab.mechanism_of(loaded) == attnlab.mechanism_of(model)
    assert close(compute_logits(loaded, "left"), expected)
    attnlab.uninstall(loaded)
    assert close(compute_logits(loaded, "left"), expected)


def test_another_line_starts_where_the_last_one_ended() -> None:
    model = build_family(FAMILIES["gpt_oss"])
    attnlab.install(model, "dot | softmax(sink=learned)")
    with torch.no_grad():
        get(model, "softmax_sink").fill_(0.75)
    attnlab.install(model, "cosine | softmax(sink=learned)")
    assert get(model, "softmax_sink").tolist() == [0.75] * 4


def test_a_layer_takes_over_what_its_own_line_has() -> None:
    model = build_family(FAMILIES["gpt_oss"])
    model.name_or_path = model.config.name_or_path = "somewhere/pretrained"
    with pytest.warns(AttnlabWarning, match="its learned attention sinks"):
        attnlab.install(model, "dot | softmax(sink=learned) @ 0; dot | softmax @ 1")
    assert list(learned(model)) == ["model.layers.0.self_attn.attnlab.softmax_sink"]


def test_t5_generates_with_a_static_cache() -> None:
    model = build_family(FAMILIES["t5"])
    options: dict[str, Any] = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}
    expected = model.generate(tokens(), **options)
    attnlab.install(model, attnlab.describe(model))
    assert torch.equal(model.generate(tokens(), cache_implementation="static", **options), expected)
    attnlab.install(model, "dot | softmax")
    with pytest.raises(InstallError, match=r"the model itself has.*install 'dot \| softmax \| relative'"):
        model.generate(tokens(), cache_implementation="static", **options)


def test_a_position_bias_that_is_not_that_of_the_stack_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_family(Family("t5", "", T5, FAMILIES["t5"].head))
    attnlab.install(model, "dot | softmax")
    module = model.encoder.block[0].layer[0].SelfAttention
    monkeypatch.setattr(module, "compute_bias", lambda *args, **options: torch.ones(1, 4, 9, 9).double())
    with pytest.raises(InstallError, match="not the relative bias of its stack"):
        compute_logits(model, "none")


@pytest.mark.parametrize("name", ["gpt_oss", "t5"])
@pytest.mark.parametrize("line", ["own", "dot | softmax"])
def test_gradient_checkpointing_gives_the_same_gradients(name: str, line: str) -> None:
    model = build_family(FAMILIES[name])
    attnlab.install(model, attnlab.describe(model) if line == "own" else line)
    calm(model)
    backward(model)
    expected = {key: p.grad for key, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    backward(model)
    found = {key: p.grad for key, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    assert all(close(found[key], expected[key]) for key in expected)


def test_a_norm_is_refused_where_the_projection_of_queries_has_a_gate() -> None:
    changes = {**GROUPED, "num_hidden_layers": 4}  # the fourth layer has attention
    model = build_family(Family("qwen3_next", "", changes))
    with pytest.raises(InstallError, match="it computes more than queries"):
        attnlab.install(model, "dot | softmax | norm(rms)")
