"""The optimizer of a model: which parameters decay, one fused update, and its state by parameter name.

Names, unlike positions, are the same in every process and under every wrapper.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnlab.errors import TrainingError
from attnlab.install import undecayed

from ..spec import Optimizer


def get_trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the trainable parameters, each under its first name."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def make_optimizer(model: PreTrainedModel, settings: Optimizer) -> torch.optim.Optimizer:
    """Build the optimizer; only matrices decay, except for those that a mechanism exempts (α, exponents)."""
    trained = get_trained_parameters(model)
    if not trained:
        raise TrainingError("no parameter of this model trains; choose another tuning")
    exempt = set(undecayed(model))
    groups: list[dict[str, Any]] = []
    for is_decayed, decay in ((True, settings.weight_decay), (False, 0.0)):
        parameters = [p for name, p in trained.items() if (p.dim() >= 2 and name not in exempt) is is_decayed]
        if parameters:
            groups.append({"params": parameters, "weight_decay": decay})
    if settings.name == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum, fused=True)
    kind = torch.optim.AdamW if settings.name == "adamw" else torch.optim.Adam
    return kind(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)


def get_optimizer_state(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return an optimizer's state as tensors called `name:entry`."""
    return {
        f"{name}:{entry}": value.detach().cpu()
        for name, parameter in get_trained_parameters(model).items()
        for entry, value in optimizer.state.get(parameter, {}).items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load the output of `get_optimizer_state` into a new optimizer of the same model."""
    trained = get_trained_parameters(model)
    for key, value in state.items():
        name, _, entry = key.rpartition(":")
        if name not in trained:
            raise TrainingError(f"the checkpoint has optimizer state of '{name}', which does not train in this run")
        # Fused updates need the step count on the parameter's device, too.
        optimizer.state[trained[name]][entry] = value.to(trained[name].device)
