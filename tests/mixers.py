"""Mixers that tests install: registered while a test runs that uses the fixture `mixers`."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Average(nn.Module):
    """An exponential moving average of the past, and a projection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.linspace(-2.0, 2.0, width))
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.advance(x, x.new_zeros(len(x), x.shape[2]))[0]

    def advance(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        keep, rows = self.decay.sigmoid(), []
        for token in x.unbind(1):
            state = keep * state + (1 - keep) * token
            rows.append(state)
        return self.project(torch.stack(rows, 1)), state


class Stepping(Average):
    """The same with a step."""

    def step(self, x: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
        return self.advance(x, x.new_zeros(len(x), x.shape[2]) if state is None else state)


class Peeking(nn.Module):
    """The mean of all tokens, also later ones; it knows its padding."""

    def __init__(self, width: int, *, layer: int, num_heads: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.place = (layer, num_heads)

    def forward(self, x: Tensor, *, mask: Tensor) -> Tensor:
        mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        return self.gain * mean[:, None].expand_as(x)


CLASSES = {"average": Average, "stepping": Stepping, "peeking": Peeking}
