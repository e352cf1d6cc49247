"""Learned parameters for a stage under test, drawn from the ranges it declares."""

import torch
from torch import Tensor

from attnlab.mechanisms import Dims, Stage


def draw(stage: Stage, dims: Dims, seed: int = 0, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """Draw every parameter of a stage uniformly from where it starts."""
    generator = torch.Generator().manual_seed(seed)
    drawn = {}
    for name, parameter in stage.parameters(dims).items():
        if parameter.start is not None:
            drawn[name] = parameter.draw(name, generator).to(dtype)
            continue
        uniform = torch.rand(parameter.shape, generator=generator, dtype=torch.float64)
        drawn[name] = (parameter.low + (parameter.high - parameter.low) * uniform).to(dtype)
    return drawn
