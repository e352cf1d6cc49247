"""The projections of a layer to queries, keys and values: three modules, or parts of the output of one.

A family is recognised by the submodules of its attention, never by the model's name.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
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

INTERLEAVED = "query_key_value"
"""One module whose output has queries, keys and values of each head in turn (BLOOM, Falcon, GPT-NeoX)."""


@dataclass(frozen=True)
class Projection:
    """The part of a linear module's output that is a layer's queries, keys or values."""

    name: str
    module: nn.Module
    start: int
    stop: int
    is_fused: bool = False
    """Whether the module computes other parts too."""

    @property
    def width(self) -> int:
        """The number of channels."""
        return self.stop - self.start

    def cut(self, output: Tensor) -> Tensor:
        """Take the part out of the module's output."""
        return output[..., self.start : self.stop] if self.is_fused else output

    def replace(self, output: Tensor, part: Tensor) -> Tensor:
        """Return the module's output with this part replaced."""
        return torch.cat([output[..., : self.start], part, output[..., self.stop :]], -1) if self.is_fused else part


Projections = Mapping[Part, Projection]


def unwrap_adapter(module: nn.Module) -> nn.Module:
    """Return the module below an adapter (peft)."""
    while isinstance(below := getattr(module, "base_layer", None), nn.Module):
        module = below
    return module


def _is_linear(module: object) -> bool:
    return isinstance(module, nn.Module) and isinstance(unwrap_adapter(module), nn.Linear | Conv1D)


def in_width(module: nn.Module) -> int:
    """Return the width of a linear module's input."""
    return int(module.nx if isinstance(module, Conv1D) else module.in_features)  # type: ignore[arg-type]


def _out_width(module: nn.Module) -> int:
    return int(module.nf if isinstance(module, Conv1D) else module.out_features)  # type: ignore[arg-type]


def find_projections(module: nn.Module, query_width: int | None) -> Projections | None:
    """Find an attention module's projections; None if its structure is not known.

    query_width: heads · head_dim of the module or its config, by which a fused module is split.
    """
    for names in SEPARATE:
        if all(_is_linear(getattr(module, name, None)) for name in names):
            parts = (_make_projection(module, name) for name in names)
            return dict(zip(PARTS, parts, strict=True))
    fused = [name for name in FUSED if _is_linear(getattr(module, name, None))]
    if len(fused) != 1 or query_width is None:
        return None
    # In GPT-2's cross-attention, the queries have a module of their own.
    query = _make_projection(module, "q_attn") if _is_linear(getattr(module, "q_attn", None)) else None
    linear = unwrap_adapter(getattr(module, fused[0]))
    width, first = _out_width(linear), 0 if query else query_width
    middle, odd = divmod(width + first, 2)  # keys and values have equal widths
    if odd or width <= first:
        return None
    bounds: dict[Part, tuple[int, int]] = {"q": (0, first), "k": (first, middle), "v": (middle, width)}
    split: dict[Part, Projection] = {part: Projection(fused[0], linear, *bounds[part], True) for part in PARTS}
    return {**split, "q": query} if query else split


def describe_unknown(module: nn.Module, name: str) -> str:
    """Return why the projections of an attention module were not found, as the end of an error."""
    where = f"'{name}' ({type(module).__name__})"
    if hasattr(module, INTERLEAVED):
        return f"queries, keys and values of {where} are interleaved in one projection, '{INTERLEAVED}'"
    return (
        f"the structure of {where} is not recognised: no separate or fused linear modules for queries, keys and values"
    )


def _make_projection(module: nn.Module, name: str) -> Projection:
    linear = unwrap_adapter(getattr(module, name))
    return Projection(name, linear, 0, _out_width(linear))


class StandIn(ABC):
    """A callable that replaces a module's forward.

    Not a hook: torch.compile ignores hooks when it decides whether code compiled for one model fits another, and would
    run one arm's code in the next.
    """

    module: nn.Module
    before: "StandIn | None"

    def take_place(self, module: nn.Module) -> None:
        """Replace a module's forward, or another StandIn there."""
        self.module, self.before = module, vars(module).get("forward")
        vars(module)["forward"] = self

    def undo(self) -> None:
        """Restore the module's forward."""
        vars(self.module).pop("forward")
        if self.before is not None:
            vars(self.module)["forward"] = self.before

    def original(self, x: Tensor) -> Tensor:
        """Compute the output of the replaced forward."""
        return type(self.module).forward(self.module, x) if self.before is None else self.before(x)

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Compute the module's output."""


def check_forward(module: nn.Module) -> None:
    """Refuse a module whose forward another tool has replaced, since the order of changes would be lost."""
    if not isinstance(vars(module).get("forward"), StandIn | None):
        raise InstallError(
            f"the forward of a {type(module).__name__} is wrapped (by accelerate, or another tool); unwrap it, install "
            "or uninstall, and wrap it again"
        )
