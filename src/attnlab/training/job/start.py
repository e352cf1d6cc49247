"""Where a model's weights begin: each a function of the seed and its own name, or taken from a checkpoint.

So a variant with more parameters shifts no other weight's start, and arms of one seed begin alike in all they share.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from attnlab.data.draws import keys_of, name_key

INITIAL = name_key("initial weights")
MARK = "_is_hf_initialized"
"""transformers leaves alone what carries this mark."""


def initialise(model: PreTrainedModel, seed: int, only: Collection[str] | None = None) -> None:
    """Draw the weights of a model as its architecture says, each module from the seed and its name.

    only: names of parameters; the others stay as they are. torch's own generator is left alone.
    """
    names = {id(module): name for name, module in model.named_modules()}
    owners = owners_of(model)
    for module in model.modules():
        vars(module).pop(MARK, None)
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if owners[id(parameter)] == name:
            setattr(parameter, MARK, only is not None and name not in only)
    parts = [part for part in model.modules() if isinstance(part, PreTrainedModel)]
    for part in parts:
        vars(part)["_initialize_weights"] = functools.partial(seeded, part, names, owners, seed)
    try:
        with torch.random.fork_rng(devices=[]):
            model.init_weights()  # type: ignore[no-untyped-call]
    finally:
        for part in parts:
            del vars(part)["_initialize_weights"]
        for module in model.modules():
            vars(module)[MARK] = True


def owners_of(model: PreTrainedModel) -> dict[int, str]:
    """Return the name that each parameter is drawn under.

    Of a head that is tied to the body it is the body's, so that models with different heads begin with one body.
    """
    found: dict[int, str] = {}
    names = [(name, id(parameter)) for name, parameter in model.named_parameters(remove_duplicate=False)]
    for name, parameter in sorted(names, key=lambda pair: not pair[0].startswith(f"{model.base_model_prefix}.")):
        found.setdefault(parameter, name)
    return found


def seeded(
    part: PreTrainedModel, names: dict[int, str], owners: dict[int, str], seed: int, module: nn.Module, *more: Any
) -> None:
    """Stand in for transformers' own method: the same draws, from a seed of this module's."""
    name = names[id(module)]
    own = name.removeprefix(f"{part.base_model_prefix}.")
    key = int(np.asarray(keys_of(INITIAL, seed, name_key(own))).astype(np.int64)) & (2**63 - 1)
    torch.manual_seed(key)
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
