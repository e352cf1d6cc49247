"""Initial weights: each a function of the seed and its name, or taken from a checkpoint.

A variant with more parameters therefore changes no other initial weight, and arms of one seed start from the same
values in everything they share.
"""

import functools
from collections.abc import Collection
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from attnlab.data.draws import keys_of, name_key

INITIAL = name_key("initial weights")
MARK = "_is_hf_initialized"
"""transformers does not initialise modules and parameters with this attribute."""


def initialise(model: PreTrainedModel, seed: int, only: Collection[str] | None = None) -> None:
    """Draw the weights of a model as its architecture does, each module from the seed and its name.

    only: names of parameters; the others keep their values. torch's global generator is not used.
    """
    names = {id(module): name for name, module in model.named_modules()}
    owners = _find_owners(model)
    for module in model.modules():
        vars(module).pop(MARK, None)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if owners[id(parameter)] == name:
            setattr(parameter, MARK, only is not None and name not in only)
    parts = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    for part in parts:
        vars(part)["_initialize_weights"] = functools.partial(_initialize_seeded, part, names, owners, seed)
    try:
        with torch.random.fork_rng(devices=[]):
            model.init_weights()  # type: ignore[no-untyped-call]
    finally:
        for part in parts:
            del vars(part)["_initialize_weights"]
        for module in model.modules():
            vars(module)[MARK] = True


def _find_owners(model: PreTrainedModel) -> dict[int, str]:
    """Return the name that each parameter is drawn under; for a head tied to the body it is the body's.

    So models with different heads start with the same body.
    """
    owners: dict[int, str] = {}
    names = [(name, id(parameter)) for name, parameter in model.named_parameters(remove_duplicate=False)]
    for name, parameter in sorted(names, key=lambda pair: not pair[0].startswith(f"{model.base_model_prefix}.")):
        owners.setdefault(parameter, name)
    return owners


def _initialize_seeded(
    part: PreTrainedModel, names: dict[int, str], owners: dict[int, str], seed: int, module: nn.Module, *more: Any
) -> None:
    """Call transformers' own method with a seed for this module; it draws a tied parameter only with its owner."""
    name = names[id(module)]
    name_in_body = name.removeprefix(f"{part.base_model_prefix}.")
    torch.manual_seed(int(keys_of(INITIAL, seed, name_key(name_in_body))) & (2**63 - 1))
    tied = [
        parameter
        for local, parameter in module.named_parameters(recurse=False)
        if owners[id(parameter)] != f"{name}.{local}".lstrip(".") and not getattr(parameter, MARK)
    ]
    for parameter in tied:
        setattr(parameter, MARK, True)
    type(part)._initialize_weights(part, module, *more)
    for parameter in tied:
        setattr(parameter, MARK, False)
