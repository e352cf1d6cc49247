"""Where a layer's queries, keys and values come from: three modules, or stretches of the output of one.

A family is recognised by what an attention module holds, never by the model's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from attnlab.errors import InstallError

Part = Literal["q", "k", "v"]
PARTS: tuple[Part, ...] = ("q", "k", "v")

SEPARATE: tuple[tuple[str, str, str], ...] = (
    ("query", "key", "value"),  # BERT, RoBERTa, ELECTRA, ALBERT, ViT
    ("q_proj", "k_proj", "v_proj"),  # Llama, Mistral, Qwen, OPT, BART, CLIP
    ("q_lin", "k_lin", "v_lin"),  # DistilBERT
    ("q", "k", "v"),  # T5
    ("Wq", "Wk", "Wv"),
    ("linear_q", "linear_k", "linear_v"),
)
FUSED = ("c_attn", "Wqkv", "qkv_proj", "qkv")
"""One module whose output is the queries, then the keys, then the values."""


@dataclass(frozen=True)
class Projection:
    """The stretch of a linear module's output that is a layer's queries, keys or values."""

    name: str
    module: nn.Module
    start: int
    stop: int

    @property
    def width(self) -> int:
        """How many numbers a token has."""
        return self.stop - self.start

    @property
    def is_fused(self) -> bool:
        """Whether the module computes more than this."""
        return self.width != _out_width(self.module)

    def cut(self, output: Tensor) -> Tensor:
        """Take the stretch out of the module's output."""
        return output[..., self.start : self.stop] if self.is_fused else output

    def replace(self, output: Tensor, stretch: Tensor) -> Tensor:
        """Put another stretch in its place."""
        return (
            torch.cat([output[..., : self.start], stretch, output[..., self.stop :]], -1) if self.is_fused else stretch
        )


Projections = Mapping[Part, Projection]


def unwrap_adapter(module: nn.Module) -> nn.Module:
    """Return the module below an adapter (peft), whose input and output are the projection's own."""
    while isinstance(below := getattr(module, "base_layer", None), nn.Module):
        module = below
    return module


def _is_linear(module: object) -> bool:
    """Tell whether a module is a matrix that multiplies the last axis."""
    return isinstance(module, nn.Module) and isinstance(unwrap_adapter(module), nn.Linear | Conv1D)


def in_width(module: nn.Module) -> int:
    """Return how wide a linear module's input is."""
    return int(module.nx if isinstance(module, Conv1D) else module.in_features)  # type: ignore[arg-type]


def _out_width(module: nn.Module) -> int:
    """Return how wide a linear module's output is."""
    return int(module.nf if isinstance(module, Conv1D) else module.out_features)  # type: ignore[arg-type]


def find_projections(module: nn.Module, query_width: int | None) -> Projections | None:
    """Recognise an attention module's projections; None where its structure is not a known one.

    query_width: heads · head_dim as the module or its config says; a fused module is cut by it.
    """
    for names in SEPARATE:
        if all(_is_linear(getattr(module, name, None)) for name in names):
            parts = (_make_projection(module, name) for name in names)
            return dict(zip(PARTS, parts, strict=True))
    fused = [name for name in FUSED if _is_linear(getattr(module, name, None))]
    if len(fused) != 1 or query_width is None:
        return None
    if _is_linear(getattr(module, "q_attn", None)):  # GPT-2's cross-attention: keys and values in one
        query = _make_projection(module, "q_attn")
        stretches = _cut_evenly(module, fused[0], query.width)
        return None if stretches is None else {"q": query, **dict(zip(("k", "v"), stretches, strict=True))}
    stretches = _cut_evenly(module, fused[0], query_width)
    return None if stretches is None else dict(zip(PARTS, stretches, strict=True))


def _make_projection(module: nn.Module, name: str) -> Projection:
    """Return a projection that is all of a module."""
    linear = unwrap_adapter(getattr(module, name))
    return Projection(name, linear, 0, _out_width(linear))


def _cut_evenly(module: nn.Module, name: str, first: int) -> list[Projection] | None:
    """Cut a fused module's output: the first stretch as wide as the queries, keys and values alike."""
    linear = unwrap_adapter(getattr(module, name))
    has_queries = not hasattr(module, "q_attn")
    rest = _out_width(linear) - first * has_queries
    if rest <= 0 or rest % 2:
        return None
    ends = [0, *([first] if has_queries else []), _out_width(linear) - rest // 2, _out_width(linear)]
    return [Projection(name, linear, start, stop) for start, stop in pairwise(ends)]


class StandIn(ABC):
    """A callable of ours in the place of a module's forward.

    Not a hook after it: torch.compile takes no notice of hooks when it asks whether code compiled for one model fits
    another, and would run one arm's code in the next.
    """

    module: nn.Module
    before: StandIn | None

    def take_place(self, module: nn.Module) -> None:
        """Stand in for a module's forward, or for another of ours there."""
        self.module, self.before = module, vars(module).get("forward")
        vars(module)["forward"] = self

    def step_aside(self) -> None:
        """Give the module back the forward it had."""
        vars(self.module).pop("forward")
        if self.before is not None:
            vars(self.module)["forward"] = self.before

    def original(self, x: Tensor) -> Tensor:
        """Compute what the module would without this."""
        return type(self.module).forward(self.module, x) if self.before is None else self.before(x)

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Compute the module's output another way."""


def check_forward(module: nn.Module) -> None:
    """Refuse a module whose forward someone else has replaced: ours could not be put in or taken out in order."""
    if not isinstance(vars(module).get("forward"), StandIn | None):
        raise InstallError(
            f"the forward of a {type(module).__name__} is wrapped (by accelerate, or another tool); unwrap it, install "
            "or uninstall, and wrap it again"
        )
