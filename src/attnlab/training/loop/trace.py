"""What goes on inside a model while it trains: weight norms, how spread its attention is, α and exponents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.install import attention_layers
from attnlab.tasks.objective import evaluation_mode, forward

from ..tuning.parts import PROMPT

ROWS = 4
"""Rows of a batch that attention is looked at on."""


def weight_norms(model: nn.Module) -> dict[str, float]:
    """Return the norm of every parameter, by name."""
    return {name: float(parameter.detach().float().norm()) for name, parameter in model.named_parameters()}


def trace(model: nn.Module, batch: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return one trace, as plain data."""
    norms = weight_norms(model)
    found: dict[str, Any] = {"weight_norm": sum(norm**2 for norm in norms.values()) ** 0.5}
    for name, _, layer in attention_layers(model):
        for own, parameter in layer.named_parameters(recurse=False):
            if parameter.numel() <= 64:
                found[f"{name}.{own}"] = parameter.detach().flatten().tolist()
        for acting in layer.acting:
            if (alpha := getattr(acting.stage, "alpha", None)) is not None:
                found[f"{name}.alpha_now"] = float(alpha)
    return found | {f"{name}.entropy": value for name, value in entropies(model, batch).items()}


def entropies(model: Any, batch: Mapping[str, Tensor]) -> dict[str, list[float]]:
    """Return the mean entropy of attention in nats, one a head, by layer.

    Weights that do not sum to 1 are taken by their absolute values, divided by their sum; a row of zeros has none.
    """
    few = {name: tensor[:ROWS] for name, tensor in batch.items()}
    is_real = few["attention_mask"].bool() if "attention_mask" in few else torch.ones_like(few["input_ids"]).bool()
    prompt = getattr(model, PROMPT, None)
    if prompt is not None:
        is_real = prompt.inserted(is_real, False)
    with evaluation_mode(model):
        output = forward(model, few, output_attentions=True)
    attentions = output.attentions or ()
    names = [name for name, _, _ in attention_layers(model)]
    if len(names) != len(attentions):  # ALBERT passes through one module many times
        names = [f"attention {number}" for number in range(len(attentions))]
    found = {}
    for name, weights in zip(names, attentions, strict=True):
        shares = weights.detach().double().abs().cpu()
        shares = shares / shares.sum(-1, keepdim=True).clamp_min(1e-300)
        rows = -(shares * shares.clamp_min(1e-300).log()).sum(-1)
        found[name] = [float(rows[:, head][is_real].mean()) for head in range(rows.shape[1])]
    return found
