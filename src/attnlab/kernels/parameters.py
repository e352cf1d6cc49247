"""The learned parameters of a call: the caller's, checked, or their initial values."""

import zlib
from collections.abc import Mapping

import torch
from torch import Tensor

from attnlab.errors import ParameterError, closest
from attnlab.mechanisms import Mechanism, Params


def check_parameters(
    mechanism: Mechanism, q: Tensor, v: Tensor, given: Mapping[str, Tensor] | None, more: Mapping[str, int]
) -> Params:
    """Return the learned parameters in the dtype of q: the caller's, checked, or the declared initial values."""
    sizes = (q.shape[1], q.shape[3], v.shape[3])
    if given is None:
        return {name: value.to(q) for name, value in initial_values(mechanism, *sizes, **more).items()}
    declared = mechanism.parameters(*sizes, **more)
    for name in given:
        if name not in declared:
            hint = closest(name, declared) or f"; it has {', '.join(declared) or 'none'}"
            raise ParameterError(f"'{mechanism}' has no parameter '{name}'{hint}")
    for name, parameter in declared.items():
        if name not in given:
            raise ParameterError(f"parameter '{name}' of '{mechanism}' is missing; its shape is {parameter.shape}")
        shape = tuple(given[name].shape)
        # Of what the heads of a layer share, a model holds one.
        is_shared = parameter.per != "head" and shape == (1, *parameter.shape[1:])
        if shape != parameter.shape and not is_shared:
            raise ParameterError(f"parameter '{name}' must have shape {parameter.shape}, not {shape}")
    return {name: given[name].to(q) for name in declared}


def initial_values(
    mechanism: Mechanism, num_heads: int, head_dim: int, value_dim: int, seed: int = 0, layer: int = 0, **more: int
) -> dict[str, Tensor]:
    """Return the initial values of the learned parameters; each depends only on the seed, its name and the layer."""
    declared = mechanism.parameters(num_heads, head_dim, value_dim, layer, **more)
    values = {}
    for name, parameter in declared.items():
        generator = torch.Generator()  # torch.compile leaves the function here, before a hash that it cannot trace
        generator.manual_seed(zlib.crc32(f"{name}:{seed}".encode()))
        values[name] = parameter.draw(name, generator)
    return values
