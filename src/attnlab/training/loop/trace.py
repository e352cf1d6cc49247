"""Traces of a model during training: weight norms, attention entropy, α and exponents.

A layer with a mixer has no attention weights, and so no entropy; small parameters of its module are traced.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.install import attention_layers
from attnlab.install.inspection import omit_missing_attentions
from attnlab.tasks.objective import evaluation_mode, forward

from ..tuning.parts import PROMPT

ROWS = 4
"""Rows of a batch that the entropy is computed on."""


def compute_weight_norms(model: nn.Module) -> dict[str, float]:
    """Return the norm of every parameter, by name."""
    return {name: float(parameter.detach().float().norm()) for name, parameter in model.named_parameters()}


def trace(model: nn.Module, batch: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return one trace, as plain data."""
    values: dict[str, Any] = {"weight_norm": sum(norm**2 for norm in compute_weight_norms(model).values()) ** 0.5}
    for name, _, layer in attention_layers(model):
        for local_name, parameter in layer.named_parameters(recurse=layer.replaces_weights):
            if parameter.numel() <= 64:
                values[f"{name}.{local_name}"] = parameter.detach().flatten().tolist()
        for acting in layer.acting:
            if (alpha := getattr(acting.stage, "alpha", None)) is not None:
                values[f"{name}.alpha_now"] = float(alpha)
    return values | {f"{name}.entropy": value for name, value in compute_entropies(model, batch).items()}


def compute_entropies(model: Any, batch: Mapping[str, Tensor]) -> dict[str, list[float]]:
    """Return the mean entropy of attention in nats per head, by layer that has attention weights.

    Weights are normalised: their absolute values are divided by their sum.
    """
    few = {name: tensor[:ROWS] for name, tensor in batch.items()}
    is_real = few["attention_mask"].bool() if "attention_mask" in few else torch.ones_like(few["input_ids"]).bool()
    prompt = getattr(model, PROMPT, None)
    if prompt is not None:
        is_real = prompt.insert(is_real, False)
    names = [name for name, _, layer in attention_layers(model) if not layer.replaces_weights]
    if not names:
        return {}
    with evaluation_mode(model), omit_missing_attentions(model):
        output = forward(model, few, output_attentions=True).attentions or ()
    attentions = [weights for weights in output if weights is not None]
    if len(names) != len(attentions):  # ALBERT calls one module many times
        names = [f"attention {number}" for number in range(len(attentions))]
    entropies = {}
    for name, weights in zip(names, attentions, strict=True):
        shares = weights.detach().double().abs().cpu()
        shares = shares / shares.sum(-1, keepdim=True).clamp_min(1e-300)
        rows = -(shares * shares.clamp_min(1e-300).log()).sum(-1)
        entropies[name] = [float(rows[:, head][is_real].mean()) for head in range(rows.shape[1])]
    return entropies
