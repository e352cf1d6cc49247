"""Attention as a module: `attend` with the mechanism's learned parameters."""

import torch
from torch import Tensor, nn

from attnlab.errors import ShapeError
from attnlab.mechanisms import parse_mechanism

from .attend import attend
from .call import check_sizes, refuse_mixer
from .dropout import check_rate
from .layer_input import GivenInput
from .parameters import initial_values
from .positions import Given
from .prepare import MechanismLike


class Attention(nn.Module):
    """A mechanism over projected q, k and v, with its learned parameters; token dropout is active while training.

    `layer` is the number of the layer, for stages that depend on it; `model_dim` the width of its input x, by default
    that of all heads together; `vocab_size` the number of token ids, for stages that request `tokens`. After a call,
    `penalty` holds the term that the mechanism adds to the loss, or None.
    """

    def __init__(
        self, mechanism: MechanismLike, num_heads: int, head_dim: int, value_dim: int | None = None,
        *, dropout: float = 0.0, kernel: str = "auto", seed: int = 0, layer: int = 0, model_dim: int = 0,
        vocab_size: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        value_dim = head_dim if value_dim is None else value_dim
        check_sizes(num_heads=num_heads, head_dim=head_dim, value_dim=value_dim, vocab_size=vocab_size)
        check_rate(dropout)
        self.mechanism = parse_mechanism(mechanism)
        refuse_mixer(self.mechanism)
        self.num_heads, self.head_dim, self.value_dim = num_heads, head_dim, value_dim
        self.dropout, self.kernel, self.layer = dropout, kernel, layer
        self.penalty: Tensor | None = None
        self.learned: list[str] = []
        sizes = (num_heads, head_dim, value_dim, seed, layer)
        more = {"model_dim": model_dim, "vocab_size": vocab_size}
        for name, value in initial_values(self.mechanism, *sizes, **more).items():
            self.learned.append(name)
            self.register_parameter(name, nn.Parameter(value.to(torch.get_default_dtype(), copy=True)))

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False, mask: Tensor | None = None,
        scale: float | None = None, x: GivenInput = None, first: Tensor | None = None, tokens: Tensor | None = None,
        positions: Given = None,
    ) -> Tensor:  # fmt: skip
        """Attend; arguments as in `attnlab.attend`."""
        if q.dim() == 4 and (q.shape[1], q.shape[3]) != (self.num_heads, self.head_dim):
            sizes = f"{self.num_heads} heads of {self.head_dim}; q has {q.shape[1]} of {q.shape[3]}"
            raise ShapeError(f"this layer has {sizes}")
        out = attend(
            q, k, v, self.mechanism, causal=causal, mask=mask, kernel=self.kernel, scale=scale,
            parameters={name: getattr(self, name) for name in self.learned},
            dropout=self.dropout if self.training else 0.0,
            training=self.training, x=x, first=first, tokens=tokens, positions=positions, layer=self.layer,
        )  # fmt: skip
        terms = [term for stage in self.mechanism.output if (term := stage.penalty(out)) is not None]
        self.penalty = sum(terms[1:], terms[0]) if terms else None
        return out

    def __getstate__(self) -> dict[str, object]:
        """Omit the last call's penalty: it belongs to a graph, which can be neither copied nor pickled."""
        return {**self.__dict__, "penalty": None}

    def extra_repr(self) -> str:
        """Show the line and the sizes."""
        return f"'{self.mechanism}', num_heads={self.num_heads}, head_dim={self.head_dim}"
