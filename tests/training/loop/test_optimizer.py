"""Which parameters have weight decay, what the optimizers compute, and an optimizer's state by name."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from attnlab.errors import TrainingError
from attnlab.training import Optimizer, Tuning, build, train
from attnlab.training.loop.optimizer import ModelOptimizer, make_optimizer
from tests.training.runs import Stopping, assert_same_run, small, trained

LINE = "minkowski(p=learned) | softmax | bypass(alpha=0.5, learn=true, per=head)"


def groups_of(model: Any, settings: Optimizer) -> dict[str, float]:
    """Return the weight decay of every parameter, by name."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        names[id(parameter)]: group["weight_decay"]
        for group in make_optimizer(model, settings).groups
        for parameter in group["params"]
    }


def test_matrices_decay_and_nothing_else_does() -> None:
    model = build(small(mechanism=LINE)).model
    decays = groups_of(model, Optimizer(weight_decay=0.3))
    assert decays.keys() == {name for name, _ in model.named_parameters()}
    for name, decay in decays.items():
        is_matrix = name.endswith("weight") and "ln_" not in name
        assert decay == (0.3 if is_matrix else 0.0), name
    own = {name.rpartition(".")[2] for name in decays if "attnlab" in name}
    assert own == {"bypass_alpha", "minkowski_power"}


def test_matrices_of_a_mechanism_decay() -> None:
    model = build(small(mechanism="additive | softmax")).model
    decays = groups_of(model, Optimizer(weight_decay=0.3))
    own = {name.rpartition(".")[2]: decay for name, decay in decays.items() if "attnlab" in name}
    assert own["additive_query"] == own["additive_key"] == 0.3


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_updates_are_those_of_the_textbook(name: Any) -> None:
    settings = Optimizer(name=name, lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.2, momentum=0.5)
    model = build(small()).model.double()
    weight = next(p for p in model.parameters() if p.dim() == 2)
    mine, first, second = weight.detach().clone(), torch.zeros_like(weight), torch.zeros_like(weight)
    optimizer = make_optimizer(model, settings)
    for step in range(1, 4):
        gradient = torch.full_like(weight, 0.3 * step)
        weight.grad = gradient.clone()
        optimizer.step(0.1)
        if name != "adamw":
            gradient = gradient + 0.2 * mine
        if name == "sgd":
            first = gradient if step == 1 else 0.5 * first + gradient
            mine = mine - 0.1 * first
            continue
        first, second = 0.8 * first + 0.2 * gradient, 0.9 * second + 0.1 * gradient**2
        moved = first / (1 - 0.8**step) / ((second / (1 - 0.9**step)).sqrt() + 1e-3)
        mine = mine * (1 - 0.1 * 0.2 * (name == "adamw")) - 0.1 * moved
    torch.testing.assert_close(weight.detach(), mine, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd", "muon"])
def test_a_restored_state_goes_on_to_the_bit(name: Any) -> None:
    settings = Optimizer(name=name, lr=0.1)

    def step(model: nn.Module, optimizer: ModelOptimizer, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        for parameter in model.parameters():
            parameter.grad = torch.randn(parameter.shape, generator=generator)
        optimizer.step(0.1)

    model = build(small()).model
    optimizer = make_optimizer(model, settings)
    step(model, optimizer, 1)
    kept = {name: tensor.clone() for name, tensor in optimizer.get_state().items()}
    other = build(small()).model
    other.load_state_dict(model.state_dict())
    fresh = make_optimizer(other, settings)
    fresh.restore(kept)
    for seed in (2, 3):
        step(model, optimizer, seed)
        step(other, fresh, seed)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), other.parameters(), strict=True))


def test_state_of_what_does_not_train_is_refused() -> None:
    model = build(small()).model
    with pytest.raises(TrainingError, match="optimizer state of 'nothing', which does not train in this run"):
        make_optimizer(model, Optimizer()).restore({"nothing:exp_avg": torch.zeros(1)})


def test_a_model_in_which_nothing_trains_is_refused() -> None:
    model = build(small()).model.requires_grad_(False)
    with pytest.raises(TrainingError, match="no parameter of this model trains"):
        make_optimizer(model, Optimizer())


def find_rates(model: Any, settings: Optimizer) -> dict[str, float]:
    """Return the learning rate of every parameter, by name, after a step at half the peak."""
    optimizer = make_optimizer(model, settings)
    optimizer.step(settings.lr / 2)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return {names[id(parameter)]: group["lr"] for group in optimizer.groups for parameter in group["params"]}


@pytest.mark.parametrize("task", ["clm", "squad"])
def test_muon_has_the_matrices_of_the_blocks_and_adamw_everything_else(task: str) -> None:
    model = build(small(task, mechanism="additive | softmax")).model
    rates = find_rates(model, Optimizer(name="muon", lr=0.2, adamw_lr=0.02))
    assert rates.keys() == {name for name, _ in model.named_parameters()}
    for name, rate in rates.items():
        parts = name.split(".")
        is_hidden = ("h" in parts or "layer" in parts) and parts[-1] == "weight" and "attnlab" not in parts
        is_hidden = is_hidden and "ln_" not in name and "LayerNorm" not in parts
        assert rate == pytest.approx(0.1 if is_hidden else 0.01), name


def test_muon_decays_what_adamw_does() -> None:
    model = build(small(mechanism=LINE)).model
    assert groups_of(model, Optimizer(name="muon", weight_decay=0.3)) == groups_of(model, Optimizer(weight_decay=0.3))


def test_muon_updates_the_factors_of_lora() -> None:
    rates = find_rates(
        build(small("squad", tuning=Tuning(mode="lora"))).model, Optimizer(name="muon", lr=0.2, adamw_lr=0.02)
    )
    assert {name for name, rate in rates.items() if rate == 0.1} == {name for name in rates if "lora_" in name}
    assert any("qa_outputs" in name for name in rates)


@pytest.mark.parametrize("mode", ["head", "prompt", "prefix"])
def test_muon_without_a_matrix_to_update_is_refused(mode: Any) -> None:
    model = build(small("squad", tuning=Tuning(mode=mode, length=4))).model
    with pytest.raises(TrainingError, match="none of this BertForQuestionAnswering trains; choose tuning mode full"):
        make_optimizer(model, Optimizer(name="muon"))


@pytest.mark.parametrize(("task", "mode"), [("clm", "full"), ("squad", "lora")])
def test_an_interrupted_run_with_muon_ends_as_a_whole_one_does(task: str, mode: Any, tmp_path: Path) -> None:
    run = small(task, optimizer=Optimizer(name="muon", lr=3e-3, adamw_lr=1e-3), tuning=Tuning(mode=mode), dropout=0.1)
    trained(run, tmp_path / "whole")
    train(build(run), tmp_path / "stopped", Stopping({3}))
    trained(run, tmp_path / "stopped")
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")
