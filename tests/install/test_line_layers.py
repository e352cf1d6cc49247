"""Lines by layer in a model: each layer computes its part, and a line that does not fit the layers is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import InstallError
from attnlab.install import attention_layers, penalty, undecayed
from attnlab.install.masks import read_mask
from tests.install.models import build, learned, padding, tokens, with_loss

LINE = "dot | softmax | window(3) @ 0,1; cosine(scale=learned) | softmax @ 2"
REPEATED = "dot | softmax | window(3) @ 0 every 2; dot | relu(divide=n) @ 1 every 2"


def lines(model: Any) -> list[str]:
    return [str(layer.mechanism) for _, _, layer in attention_layers(model)]


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_each_layer_has_its_part(name: str) -> None:
    model = attnlab.install(build(name, num_hidden_layers=3), LINE)
    assert lines(model) == ["dot | softmax | window(3)"] * 2 + ["cosine(scale=learned) | softmax"]
    assert str(attnlab.mechanism_of(model)) == "dot | softmax | window(3) @ 0-1; cosine(scale=learned) | softmax @ 2"
    assert [key.split(".attnlab.")[1] for key in learned(model)] == ["cosine_scale"]
    assert undecayed(model) == list(learned(model))
    model = attnlab.install(build(name, num_hidden_layers=5), REPEATED)
    assert [line == "dot | relu(divide=n)" for line in lines(model)] == [False, True, False, True, False]


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "bart"])
def test_a_layer_computes_what_it_computes_in_a_model_of_that_mechanism_alone(name: str) -> None:
    """Layers 0 and 1 of the model by layer are layer 0 of one model and layer 1 of another."""
    by_layer = build(name).double()
    first, second = build(name).double(), build(name).double()
    attnlab.install(by_layer, "dot | relu(divide=n) @ 0; cosine | softmax @ 1")
    attnlab.install(first, "dot | relu(divide=n)")
    attnlab.install(second, "cosine | softmax")
    for model in (by_layer, first, second):
        model.eval()
    for (_, module, layer), (_, of_first, _), (_, of_second, _) in zip(
        attention_layers(by_layer), attention_layers(first), attention_layers(second), strict=True
    ):
        expected: Any = of_first if "relu" in str(layer.mechanism) else of_second
        q = torch.randn(1, 4, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        given = (q, q, q, read_mask(None, module, True), None, 0.0, False)
        assert torch.equal(layer(*given)[0], expected.attnlab(*given)[0])


def test_it_survives_saving_loading_and_from_pretrained(tmp_path: Path) -> None:
    model = attnlab.install(with_loss("llama", num_hidden_layers=3), LINE)
    expected = model(tokens(), attention_mask=padding("right")).logits
    attnlab.save(model, tmp_path)
    for loaded in (attnlab.load(tmp_path, LINE), AutoModelForCausalLM.from_pretrained(tmp_path)):
        assert attnlab.mechanism_of(loaded) == attnlab.mechanism_of(model)
        assert lines(loaded) == lines(model)
        assert torch.equal(loaded(tokens(), attention_mask=padding("right")).logits, expected)
    with pytest.raises(InstallError, match=r"holds 'dot \| softmax \| window\(3\) @ 0-1; .*, not 'dot \| softmax'"):
        attnlab.load(tmp_path, "dot | softmax")


def test_it_can_be_replaced_and_taken_out() -> None:
    model = build("gpt2")
    expected = model(tokens()).last_hidden_state
    attnlab.install(model, "dot | softmax | share(qk) @ 0; dot | softmax | heads(kv=2) @ 1")
    attnlab.install(model, REPEATED)
    assert str(attnlab.mechanism_of(model)) == REPEATED
    attnlab.uninstall(model)
    assert attnlab.mechanism_of(model) is None
    assert model(tokens()).last_hidden_state.shape == expected.shape


def test_generation_with_a_cache_gives_the_same_tokens() -> None:
    model = attnlab.install(with_loss("llama", num_hidden_layers=3), LINE)
    both = [
        model.generate(tokens(), attention_mask=padding("left"), max_new_tokens=5, do_sample=False, use_cache=use_cache)
        for use_cache in (True, False)
    ]
    assert torch.equal(*both)


def test_an_installed_line_is_audited() -> None:
    audit = attnlab.audit(attnlab.install(with_loss("gpt2"), "dot | softmax | rope @ 0; dot | softmax | nope @ 1"))
    assert audit.passed, str(audit)
    assert "own positions" in audit.findings
    leaking = attnlab.install(with_loss("gpt2"), "dot | softmax @ 0; dot | softmax | mask(after) @ 1")
    audit = attnlab.audit(leaking, checks=["causal leak"])
    assert not audit.passed
    assert audit.findings["causal leak"].where.startswith("'mask(after)'")


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        (
            "llama",
            "dot | softmax @ 0",
            r"has no mechanism for layer 1, and the model's layers .* are 0 to 1; name each",
        ),
        ("llama", "dot | softmax @ 0-4", r"names layer 2, and the model's layers with attention are 0 to 1"),
        (
            "gpt2",
            "gemma-hybrid",
            r"no layer of the model would use 'dot \| softmax' of .* it is for layer 5 of every 6",
        ),
        ("albert", "dot | softmax @ 0 every 1", r"names layers, but those of .* have no single number"),
        ("llama", "dot | softmax | rope @ 0; dot | softmax @ 1", r"in some layers \('rope'\) and keeps them in others"),
        ("llama", "dot | softmax @ 0; dot | softmax | value_residual @ 1", r"give it to the first layer too"),
        ("llama", "dot | softmax @ 0; dot | softmax | bypass(layers=0-7) @ 1", r"names layer 2"),
    ],
)
def test_a_line_that_does_not_fit_the_model_is_refused_and_nothing_changes(name: str, line: str, message: str) -> None:
    model = build(name)
    with pytest.raises(InstallError, match=message):
        attnlab.install(model, line)
    assert attnlab.mechanism_of(model) is None


def test_the_first_layers_values_and_penalties_work_by_layer() -> None:
    line = "dot | softmax | value_residual @ 0; cosine | softmax | value_residual | penalize(output, 0.1) @ 1"
    model = attnlab.install(with_loss("gpt2"), line).train()
    loss = model(tokens(), labels=tokens()).loss
    loss.backward()
    added = penalty(model)
    assert added is not None
    assert added > 0
    assert all(p.grad is not None for p in learned(model).values())
