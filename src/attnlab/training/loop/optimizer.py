"""The optimizer of a model: who decays, one fused update, and its state by parameter name.

By name, because a name means the same in every process and under every wrapper, where a position does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.errors import TrainingError
from attnlab.install import undecayed

from ..spec import Optimizer


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return what trains, each parameter under the first of its names."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def decays(name: str, parameter: nn.Parameter, exempt: set[str]) -> bool:
    """Tell whether weight decay is for a parameter: a matrix that is none of a mechanism's α or exponents."""
    return parameter.dim() >= 2 and name not in exempt


def make_optimizer(model: PreTrainedModel, settings: Optimizer) -> torch.optim.Optimizer:
    """Build the optimizer of all that trains in a model."""
    trained = trained_parameters(model)
    if not trained:
        raise TrainingError("no parameter of this model trains; choose another tuning")
    exempt = set(undecayed(model))
    halves: list[dict[str, Any]] = []
    for is_decayed, decay in ((True, settings.weight_decay), (False, 0.0)):
        own = [p for name, p in trained.items() if decays(name, p, exempt) is is_decayed]
        if own:
            halves.append({"params": own, "weight_decay": decay})
    if settings.name == "sgd":
        return torch.optim.SGD(halves, lr=settings.lr, momentum=settings.momentum, fused=True)
    kind = torch.optim.AdamW if settings.name == "adamw" else torch.optim.Adam
    return kind(halves, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)


def optimizer_state(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return an optimizer's state as tensors called `name:entry`."""
    kept = {}
    for name, parameter in trained_parameters(model).items():
        for entry, value in optimizer.state.get(parameter, {}).items():
            if value is not None:
                kept[f"{name}:{entry}"] = value.detach().cpu()
    return kept


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, kept: Mapping[str, Tensor]) -> None:
    """Put a state that was kept into a new optimizer of the same model."""
    trained = trained_parameters(model)
    for full, value in kept.items():
        name, _, entry = full.rpartition(":")
        if name not in trained:
            raise TrainingError(f"the checkpoint has optimizer state of '{name}', which does not train in this run")
        # The count of steps stays where fused updates want it, beside the parameter.
        optimizer.state[trained[name]][entry] = value.to(trained[name].device)


def set_rates(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of every group."""
    for group in optimizer.param_groups:
        group["lr"] = rate
