"""The optimizer of a model: which parameters decay, one fused update, and its state by parameter name.

Names, unlike positions, are the same in every process and under every wrapper.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.errors import TrainingError
from attnlab.install import undecayed
from attnlab.install.weight_parts import find_fused_parameters

from ..spec import Optimizer
from .blocks import find_hidden_matrices
from .muon import Muon


def get_trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the trainable parameters, each under its first name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


class ModelOptimizer:
    """Updates the trainable parameters of a model, by one torch optimizer, or by Muon and AdamW."""

    def __init__(self, model: nn.Module, lr: float, optimizers: Sequence[torch.optim.Optimizer]) -> None:
        self.trained = get_trained_parameters(model)
        self.optimizers = optimizers
        self.groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        # A schedule, or the rate of a segment, changes all rates by the same factor.
        self.ratios = [group["lr"] / lr if lr else 1.0 for group in self.groups]

    def step(self, lr: float) -> None:
        """Update the parameters with their gradients, and clear these."""
        for group, ratio in zip(self.groups, self.ratios, strict=True):
            group["lr"] = lr * ratio
        for optimizer in self.optimizers:
            optimizer.step()
        self.zero_grad()

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

    def get_state(self) -> dict[str, Tensor]:
        """Return the state as tensors called `name:entry`."""
        return {
            f"{name}:{entry}": value.detach().cpu()
            for name, parameter in self.trained.items()
            for optimizer in self.optimizers
            for entry, value in optimizer.state.get(parameter, {}).items()
            if value is not None
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Load the output of `get_state` into a new optimizer of the same model."""
        owners = {id(p): one for one in self.optimizers for group in one.param_groups for p in group["params"]}
        for key, value in state.items():
            name, _, entry = key.rpartition(":")
            if name not in self.trained:
                raise TrainingError(f"the checkpoint has optimizer state of '{name}', which does not train in this run")
            parameter = self.trained[name]
            # Fused updates need the step count on the parameter's device, too.
            owners[id(parameter)].state[parameter][entry] = value.to(parameter.device)


def make_optimizer(model: PreTrainedModel, settings: Optimizer) -> ModelOptimizer:
    """Build the optimizer; only matrices decay, except for those that a mechanism exempts (α, exponents)."""
    trained = get_trained_parameters(model)
    if not trained:
        raise TrainingError("no parameter of this model trains; choose another tuning")
    optimizers: list[torch.optim.Optimizer] = []
    if settings.name == "muon":
        optimizers.append(_make_muon(model, settings))
        hidden = find_hidden_matrices(model)
        trained = {name: parameter for name, parameter in trained.items() if name not in hidden}
    if trained:
        optimizers.append(_make_elementwise(_make_groups(trained, set(undecayed(model)), settings), settings))
    return ModelOptimizer(model, settings.lr, optimizers)


def _make_groups(trained: Mapping[str, nn.Parameter], exempt: set[str], settings: Optimizer) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    for is_decayed, decay in ((True, settings.weight_decay), (False, 0.0)):
        parameters = [p for name, p in trained.items() if (p.dim() >= 2 and name not in exempt) is is_decayed]
        if parameters:
            groups.append({"params": parameters, "weight_decay": decay})
    return groups


def _make_elementwise(groups: list[dict[str, Any]], settings: Optimizer) -> torch.optim.Optimizer:
    if settings.name == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum, fused=True)
    kind = torch.optim.Adam if settings.name == "adam" else torch.optim.AdamW
    lr = settings.lr if settings.adamw_lr is None else settings.adamw_lr
    return kind(groups, lr=lr, betas=settings.betas, eps=settings.eps, fused=True)


def _make_muon(model: PreTrainedModel, settings: Optimizer) -> Muon:
    matrices = list(find_hidden_matrices(model).values())
    if not matrices:
        raise TrainingError(
            f"muon updates the matrices of the linear layers in a model's blocks, and none of this "
            f"{type(model).__name__} trains; choose tuning mode full or lora, or another optimizer"
        )
    parts = {id(tensor): list(slices.values()) for tensor, slices in find_fused_parameters(model)}
    return Muon(matrices, parts, settings.lr, settings.weight_decay)
