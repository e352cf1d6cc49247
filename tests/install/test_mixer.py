"""Mixers in models: every structure takes one, it trains, is saved, audited and taken out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import InstallError, ShapeError
from attnlab.install import attention_layers, set_prefix
from attnlab.install.mixer import MixerLayer
from attnlab.mechanisms import mixer
from tests.install.models import BRIDGED, STRUCTURES, build, padding, tokens, with_loss
from tests.mixers import Average, Peeking

pytestmark = pytest.mark.usefixtures("mixers")
WINDOWS = {"mistral window", "gemma3 windows", "modernbert"}
"""Structures with sliding windows, which are masks of pairs at the length of these tests."""

WHOLE = [name for name in STRUCTURES if name not in {*WINDOWS, *BRIDGED, "bart"}]


@pytest.mark.parametrize("kind", WHOLE)
def test_every_structure_takes_one_and_gives_it_back(kind: str) -> None:
    model: Any = build(kind)
    ids, mask = tokens(), padding("right")
    before, trained = model(ids, attention_mask=mask)[0], [p.requires_grad for p in model.parameters()]
    attnlab.install(model, "mixer(average)")
    out = model(ids, attention_mask=mask)[0]
    assert out.shape == before.shape
    assert not torch.allclose(out, before)
    out.square().sum().backward()
    layers = [layer for _, _, layer in attention_layers(model)]
    assert all(isinstance(layer, MixerLayer) for layer in layers)
    assert all(p.grad is not None and p.grad.any() for layer in layers for p in layer.parameters())
    for _, module, layer in attention_layers(model):
        own = {id(p) for p in layer.parameters()}
        assert not any(p.requires_grad for p in module.parameters() if id(p) not in own)
    attnlab.uninstall(model)
    assert torch.equal(model(ids, attention_mask=mask)[0], before)
    assert [p.requires_grad for p in model.parameters()] == trained


@pytest.mark.parametrize("kind", sorted(WINDOWS))
def test_a_sliding_window_is_refused_where_it_hides_pairs(kind: str) -> None:
    model = attnlab.install(build(kind), "mixer(average)")
    with pytest.raises(InstallError, match="mask of single pairs"):
        model(tokens())


def test_the_output_is_that_of_the_module_alone() -> None:
    model = attnlab.install(build("bert"), "mixer(average)")
    held: dict[str, Any] = {}
    module = model.encoder.layer[1].attention.self
    module.register_forward_hook(lambda _, args, out: held.update(x=args[0], out=out))
    model(tokens(), attention_mask=padding("right"))
    mask = padding("right")
    assert mask is not None
    x = held["x"] * mask[..., None]
    torch.testing.assert_close(held["out"][0], module.attnlab.module(x))
    assert held["out"][1] is None


@pytest.mark.parametrize("kind", ["bert", "roberta", "gpt2", "llama"])
def test_it_trains_saves_and_loads(kind: str, tmp_path: Path) -> None:
    model = with_loss(kind)
    attnlab.install(model, "mixer(average)", seed=3)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
    losses = []
    for _ in range(5):
        loss = model(tokens(), labels=tokens()).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    model.eval()
    attnlab.save(model, tmp_path)
    expected = model(tokens()).logits
    assert torch.equal(attnlab.load(tmp_path, "mixer(average)")(tokens()).logits, expected)
    assert torch.equal(type(model).from_pretrained(tmp_path)(tokens()).logits, expected)


def test_initial_values_depend_on_the_seed_and_the_layer_alone() -> None:
    def weights(seed: int) -> list[torch.Tensor]:
        model = attnlab.install(build("gpt2"), "mixer(average)", seed=seed)
        layers: list[Any] = [layer for _, _, layer in attention_layers(model)]
        return [layer.module.project.weight for layer in layers]

    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = weights(0)
    torch.manual_seed(5)
    attnlab.install(model := build("gpt2", seed=5), "mixer(average)")
    assert all(map(torch.equal, first, weights(0)))
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(first[0], weights(1)[0])
    torch.set_rng_state(state)
    attnlab.install(model, "mixer(average)")
    assert torch.equal(torch.get_rng_state(), state)


def test_layers_may_have_one_each() -> None:
    line = "mixer(average) @ 0; dot | softmax @ 1"
    model = attnlab.install(build("llama", AutoModelForCausalLM), line)
    assert str(attnlab.mechanism_of(model)) == line
    assert [type(layer).__name__ for _, _, layer in attention_layers(model)] == ["MixerLayer", "Layer"]
    assert attnlab.audit(model).passed
    swapped = attnlab.install(model, "mixer(peeking) @ 1; mixer(average) @ 0")
    assert not attnlab.audit(swapped, checks=["leak"]).passed
    assert swapped.model.layers[1].self_attn.attnlab.module.place == (1, 4)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_an_audit_finds_a_mixer_that_sees_the_future(kind: str) -> None:
    model = build(kind, AutoModelForCausalLM)
    audit = attnlab.audit(attnlab.install(model, "mixer(average)"))
    assert audit.passed, audit
    audit = attnlab.audit(attnlab.install(model, "mixer(peeking)"))
    assert not audit.findings["leak"].passed
    assert not audit.findings["prefix"].passed
    assert audit.findings["padding"].passed
    assert attnlab.audit(attnlab.install(build("bert"), "mixer(peeking)")).passed


def test_an_audit_finds_a_mixer_that_reads_padding() -> None:
    @mixer("careless")
    class Careless(Peeking):
        def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return self.gain * x.mean(1, keepdim=True).expand_as(x)

    audit = attnlab.audit(attnlab.install(build("bert"), "mixer(careless)"), checks=["padding"])
    assert not audit.passed


def test_without_a_step_a_cache_is_refused_and_generation_does_without() -> None:
    model = build("gpt2", AutoModelForCausalLM)
    before = model.config.use_cache, model.generation_config.use_cache
    attnlab.install(model, "mixer(average)")
    assert model(tokens()).past_key_values is None
    assert model.generate(tokens(), max_new_tokens=3, do_sample=False).shape == (3, 12)
    for call in (
        lambda: model(tokens(), use_cache=True),
        lambda: model.generate(tokens(), max_new_tokens=3, use_cache=True),
    ):
        with pytest.raises(InstallError, match=r"'mixer\(average\)' has no method `step`.*use_cache=False"):
            call()  # type: ignore[no-untyped-call]
    attnlab.uninstall(model)
    assert (model.config.use_cache, model.generation_config.use_cache) == before


def test_weights_prefixes_and_cross_attention_are_refused() -> None:
    model = attnlab.install(build("gpt2"), "mixer(average)")
    with pytest.raises(InstallError, match="has no attention weights"):
        model(tokens(), output_attentions=True)
    with pytest.raises(InstallError, match="no keys and values to put a prefix before"):
        set_prefix(model, 4)
    with pytest.raises(InstallError, match="cross-attention"):
        attnlab.install(build("bart"), "mixer(average)")
    with pytest.raises(attnlab.errors.RequestError, match="has no attention weights"):
        attnlab.heads.recording.record_weights(model, {"input_ids": tokens()})


def test_a_module_that_cannot_be_built_leaves_the_model_unchanged() -> None:
    @mixer("odd")
    class Odd(Average):
        def __init__(self, width: int, layer: int) -> None:
            if layer == 1:
                raise ValueError("not in layer 1")
            super().__init__(width)

    model = attnlab.install(build("gpt2"), "mixer(average)")
    before = model(tokens())[0]
    with pytest.raises(InstallError, match=r"'h.1.attn': the constructor of 'mixer\(odd\)' raised ValueError.*not in"):
        attnlab.install(model, "mixer(odd)")
    assert str(attnlab.mechanism_of(model)) == "mixer(average)"
    assert torch.equal(model(tokens())[0], before)


def test_an_output_of_another_shape_names_the_mixer() -> None:
    @mixer("narrow")
    class Narrow(Average):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[..., :3]

    model = attnlab.install(build("gpt2"), "mixer(narrow)")
    with pytest.raises(ShapeError, match=r"'mixer\(narrow\)' must return .* = \(3, 9, 32\), not \(3, 9, 3\)"):
        model(tokens())
