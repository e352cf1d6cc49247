"""The positions that a model has of its own, and how a mechanism with another scheme removes them: embeddings of
positions give zeros, and a rotation becomes the identity. Their weights stay in the model, unused and frozen."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from attnlab.errors import InstallError
from attnlab.mechanisms import Line, PositionScheme

from .attention_modules import has_position_bias
from .bridges import find_bridge

NAMES = ("wpe", "position_embeddings", "position_embedding", "embed_positions")
"""What models call the embeddings of positions that they add to those of tokens."""


def choose_scheme(line: Line) -> PositionScheme:
    """Return a scheme that says whether the model's own is removed; refuse a line that keeps it in some layers only."""
    schemes = [mechanism.positions for mechanism in line.distinct]
    replacing = [scheme for scheme in schemes if not scheme.is_of_model]
    if replacing and len(replacing) < len(schemes):
        raise InstallError(
            f"'{line}' replaces the model's positions in some layers ('{replacing[0]}') and keeps them in others, and "
            "a model adds them once for all layers; write a scheme for every layer, such as rope or nope"
        )
    return schemes[0]


def check_own_positions(line: Line, body: PreTrainedModel) -> None:
    """Refuse a scheme that replaces the model's own if it is not known where the model adds that."""
    scheme = choose_scheme(line)
    has_bias = any(has_position_bias(module) or find_bridge(module) is not None for module in body.modules())
    if not scheme.is_of_model and not has_bias and not _list_embeddings(body) and not list_rotations(body):
        raise InstallError(
            f"'{scheme}' replaces the positions of the model, and attnlab does not find those of this "
            f"{type(body).__name__}: it knows learned embeddings ({', '.join(NAMES)}), modules that return the cosines "
            "and sines of a rotation, T5's relative bias and ALiBi; without it, 'positions(model)' leaves what is there"
        )


class RemovedPositions:
    """The model's own positions, removed unless the scheme is the model's."""

    def __init__(self, scheme: PositionScheme, body: PreTrainedModel) -> None:
        embeddings = [] if scheme.is_of_model else _list_embeddings(body)
        rotations = [] if scheme.is_of_model else list_rotations(body)
        self.handles: list[RemovableHandle] = [module.register_forward_hook(_return_zeros) for module in embeddings]
        self.handles += [module.register_forward_hook(_return_identity) for module in rotations]
        self.frozen = [p for module in embeddings for p in module.parameters() if p.requires_grad]
        for parameter in self.frozen:
            parameter.requires_grad_(False)

    def undo(self) -> None:
        """Bring the positions back."""
        for handle in self.handles:
            handle.remove()
        for parameter in self.frozen:
            parameter.requires_grad_()


def _list_embeddings(body: PreTrainedModel) -> list[nn.Module]:
    """List the learned embeddings of positions; sinusoidal ones may be meant for a rotation."""
    return [
        module for name, module in body.named_modules()
        if name.rpartition(".")[2] in NAMES
        and (type(module) is nn.Embedding or type(module).__name__.endswith("LearnedPositionalEmbedding"))
    ]  # fmt: skip


def list_rotations(body: PreTrainedModel) -> list[nn.Module]:
    """List the modules that compute the cosines and sines of a rotation."""
    return [module for module in body.modules() if type(module).__name__.endswith("RotaryEmbedding")]


def _return_zeros(module: nn.Module, args: Any, output: Tensor) -> Tensor:
    return torch.zeros_like(output)


def _return_identity(module: nn.Module, args: Any, output: Any) -> tuple[Tensor, Tensor]:
    """Return cosines of 1 and sines of 0."""
    is_pair = isinstance(output, tuple) and len(output) == 2
    if not is_pair or not all(isinstance(x, Tensor) and x.shape == output[0].shape for x in output):
        raise InstallError(
            f"{type(module).__name__} does not return the cosines and sines of a rotation, so that attnlab cannot "
            "remove it; use 'positions(model)'"
        )
    return torch.ones_like(output[0]), torch.zeros_like(output[1])
