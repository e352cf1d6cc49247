"""The learned parameters of a call: the caller's, checked, or their initial values."""

import functools
import zlib
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from attnlab.errors import ParameterError, closest
from attnlab.mechanisms import Mechanism, Parameter, Params

UNUSED_SEED = 2**61 - 1


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
    declare = functools.partial(mechanism.parameters, num_heads, head_dim, value_dim, layer, **more)
    declared = declare()
    values = {}
    for name, parameter in declared.items():
        generator = torch.Generator()  # torch.compile leaves the function here, before a hash that it cannot trace
        generator.manual_seed(zlib.crc32(f"{name}:{seed}".encode()))
        values[name] = parameter.draw(name, generator)
    if any(parameter.start is not None for parameter in declared.values()):
        _refuse_random_starts(declare, values)
    return values


def _refuse_random_starts(declare: Callable[[], Mapping[str, Parameter]], values: Mapping[str, Tensor]) -> None:
    """Refuse a `start` that draws random numbers: initial values would not follow the seed of `install` or a run."""
    with torch.random.fork_rng(devices=[]):
        # A state that no caller has: torch.manual_seed inside a start gives the same values twice, and changes it.
        state = torch.default_generator.manual_seed(UNUSED_SEED).get_state()
        starts = {name: parameter for name, parameter in declare().items() if parameter.start is not None}
        again = {name: parameter.draw(name, torch.Generator()) for name, parameter in starts.items()}
        is_changed = not torch.equal(torch.default_generator.get_state(), state)
    random = [name for name, value in again.items() if not torch.equal(value, values[name])]
    if random or is_changed:
        raise ParameterError(
            f"start of parameter '{(random or list(starts))[0]}' draws random numbers, which no seed of attnlab would "
            "determine; declare Parameter(shape, std=0.1) for normal values or Parameter(shape, -0.1, 0.1) for uniform "
            "ones, which are drawn from the seed and the names of the layer and the parameter"
        )
