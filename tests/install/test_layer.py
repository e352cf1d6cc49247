"""A mechanism's learned parameters in a model: their start, their dtype, and copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, PreTrainedModel

import attnlab
from attnlab.install import set_progress, undecayed
from tests.install.models import HEADS, STARTED, WIDTH, build, learned, padding, tokens, with_loss


@pytest.mark.parametrize("name", STARTED)
def test_arms_of_one_seed_share_every_weight_they_both_have(name: str) -> None:
    states, generators, outs = {}, [], []
    for line in ("dot | softmax", "additive", "value-residual", "output-gate", "cosine | identity(divide=learned)"):
        model = with_loss(name, seed=5)
        before = torch.get_rng_state()
        attnlab.install(model, line, seed=5)
        assert torch.equal(before, torch.get_rng_state())
        generators.append(torch.rand(3))
        states[line] = {key: value for key, value in model.state_dict().items() if ".attnlab." not in key}
        outs.append(learned(model))
    baseline = states.pop("dot | softmax")
    for state in states.values():
        assert state.keys() == baseline.keys()
        assert all(torch.equal(state[key], baseline[key]) for key in baseline)
    assert all(torch.equal(draw, generators[0]) for draw in generators)


def test_learned_parameters_start_from_the_seed_the_layer_and_their_name() -> None:
    def start(seed: int, head: Any = None) -> dict[str, torch.Tensor]:
        model = build("bert") if head is None else build("bert", head)
        found = learned(attnlab.install(model, "additive", seed=seed))
        return {name.removeprefix("bert."): value for name, value in found.items()}

    first, again, other, headed = start(0), start(0), start(1), start(0, AutoModelForMaskedLM)
    assert first.keys() == headed.keys()
    assert all(torch.equal(first[name], again[name]) and torch.equal(first[name], headed[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)
    layers = [value for name, value in first.items() if name.endswith("additive_query")]
    assert not torch.equal(layers[0], layers[1])
    assert undecayed(attnlab.install(build("bert"), "additive")) == []
    assert undecayed(attnlab.install(build("bert"), "qk-norm")) == list(
        learned(attnlab.install(build("bert"), "qk-norm"))
    )


@pytest.mark.parametrize("line", ["value-bypass-learned", "value-residual", "shared-qk", "output-penalty", "additive"])
@pytest.mark.parametrize("way", ["copy", "pickle"])
def test_a_copy_stands_on_its_own(line: str, way: str) -> None:
    model = with_loss("gpt2")
    attnlab.install(model, line)
    model.train()(tokens(), labels=tokens())
    model.eval()
    other: PreTrainedModel = copy.deepcopy(model) if way == "copy" else pickle.loads(pickle.dumps(model))
    expected = model(tokens()).logits
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(other(tokens()).logits, expected)
    attnlab.uninstall(other)
    other(tokens())
    assert attnlab.mechanism_of(model) is not None
    model(tokens())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_go_through(dtype: torch.dtype) -> None:
    for model in (build("gpt2", dtype=dtype), build("gpt2").to(dtype)):
        attnlab.install(model, "additive | softmax | bypass(alpha=0.5, learn=true) | gate")
        assert {p.dtype for p in learned(model).values()} == {dtype}
        assert model(tokens(), attention_mask=padding("left")).last_hidden_state.isfinite().all()
        exact = model.to(torch.float64)(tokens()).last_hidden_state
        torch.testing.assert_close(model.to(dtype)(tokens()).last_hidden_state.double(), exact, rtol=0.1, atol=0.1)


@pytest.mark.parametrize(("per", "shapes"), [("model", [1]), ("layer", [1, 1]), ("head", [HEADS, HEADS])])
def test_a_learned_alpha_is_one_a_model_a_layer_or_a_head(per: str, shapes: list[int]) -> None:
    model = with_loss("gpt2")
    attnlab.install(model, f"dot | softmax | bypass(alpha=0.5, learn=true, per={per})")
    alphas = learned(model)
    assert [alpha.numel() for alpha in alphas.values()] == shapes
    assert all((alpha == 0.5).all() for alpha in alphas.values())
    assert undecayed(model) == list(alphas)
    fixed = attnlab.install(with_loss("gpt2"), "dot | softmax | bypass(alpha=0.5)")
    torch.testing.assert_close(model(tokens()).logits, fixed(tokens()).logits)
    model(tokens(), labels=tokens()).loss.backward()
    assert all(alpha.grad is not None and alpha.grad.all() for alpha in alphas.values())


def test_one_alpha_for_the_model_is_felt_in_every_layer() -> None:
    model = attnlab.install(build("bert"), "dot | softmax | bypass(alpha=0.5, learn=true)")
    with torch.no_grad():
        next(iter(learned(model).values())).fill_(0.25)
    quarter = attnlab.install(build("bert"), "dot | softmax | bypass(alpha=0.25)")
    torch.testing.assert_close(model(tokens()).last_hidden_state, quarter(tokens()).last_hidden_state)


@pytest.mark.parametrize(
    ("schedule", "progress", "alpha"), [("warmup", 0.25, 0.2), ("decay", 0.25, 0.6), ("decay", 1, 0)]
)
@pytest.mark.parametrize("learn", ["true", "false"])
def test_a_schedule_follows_the_progress(schedule: str, progress: float, alpha: float, learn: str) -> None:
    model = attnlab.install(build("bert"), f"dot | softmax | bypass(alpha=0.8, schedule={schedule}, learn={learn})")
    set_progress(model, progress)
    now = attnlab.install(build("bert"), f"dot | softmax | bypass(alpha={alpha})")
    torch.testing.assert_close(model.train()(tokens()).last_hidden_state.shape, (3, 9, WIDTH))
    torch.testing.assert_close(model.eval()(tokens()).last_hidden_state, now(tokens()).last_hidden_state)
