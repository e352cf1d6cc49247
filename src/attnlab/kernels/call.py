"""What a kernel computes: a Call holds the tensors; a Request describes a call without tensors, so that a kernel can
be chosen and explained before they exist."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from attnlab.errors import RequestError
from attnlab.mechanisms import LayerInput, Mechanism, Params, Positions, Stage

from .decay import Decay
from .positions import Alignment, align
from .visibility import Visibility

MaskKind = Literal["none", "keys", "pairs"]


@dataclass(frozen=True)
class Request:
    """What determines the choice of a kernel. mask: "keys" is a padding mask, "pairs" differs between queries.

    has_gaps: positions do not rise by 1, so that distances between positions are not those between indices.
    """

    mechanism: Mechanism
    num_queries: int
    num_keys: int
    head_dim: int = 64
    value_dim: int = 64
    num_heads: int = 4
    batch: int = 1
    causal: bool = False
    mask: MaskKind = "none"
    dropout: float = 0.0
    dtype: torch.dtype = torch.float32
    device: str = "cpu"
    has_gaps: bool = False

    def describe(self) -> str:
        """Name the sizes that a cost is of."""
        causal = "causal" if self.causal else "not causal"
        length = f"length {self.num_keys}"
        if self.num_queries != self.num_keys:
            queries = "1 query" if self.num_queries == 1 else f"{self.num_queries} queries"
            length = f"{queries}, {self.num_keys} keys"
        heads = "1 head" if self.num_heads == 1 else f"{self.num_heads} heads"
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{causal}, batch {self.batch}, {heads} of {self.head_dim}, {length}, {dtype}"

    @property
    def reach(self) -> int | None:
        """The number of keys from which on no query sees a key, or None if it is not known."""
        return None if self.has_gaps else self.mechanism.find_reach(self.num_heads)

    @property
    def hides_pairs(self) -> bool:
        """Whether queries see different keys, beside the causal rule."""
        return self.mask == "pairs" or bool(self.mechanism.mask)


@dataclass(frozen=True)
class Call:
    """One attention to compute: q [b h q d], k [b h k d], v [b h k e], and everything that determines the result.

    positions: None if they are 0, 1, … with the last query at the last key, and no score or weights need them.
    plain_q, plain_v: queries before features and positions, values before heads share them; for output stages.
    x, layer: the layer's input and number. decay, beta: those of `forget` and `delta`.
    """

    mechanism: Mechanism
    q: Tensor
    k: Tensor
    v: Tensor
    parameters: Params
    visibility: Visibility
    dropout: float = 0.0
    seed: int = 0
    positions: Positions | None = None
    plain_q: Tensor | None = None
    plain_v: Tensor | None = None
    x: LayerInput | None = None
    layer: int = 0
    decay: Decay | None = None
    beta: Tensor | None = None

    def params_of(self, stage: Stage) -> Params:
        """Return one stage's learned parameters under their own names."""
        return self.mechanism.params_of(stage, self.parameters)

    @property
    def alignment(self) -> Alignment | None:
        """How positions follow from indices, or None if they do not."""
        return align(self.positions, self.visibility)

    def gather_needs(self, stage: Stage, visible: Tensor | None, scores: Tensor | None = None) -> dict[str, Any]:
        """Return the keyword arguments a stage asks for; `visible` is None if all pairs are visible."""
        if visible is not None and visible.dim() < 4:  # the causal rule alone is [q k]
            visible = visible.reshape((1,) * (4 - visible.dim()) + tuple(visible.shape))
        known = {
            "positions": self.positions, "visible": visible, "scores": scores, "x": self.x,
            "num_heads": self.q.shape[1],
        }  # fmt: skip
        given = {name: known[name] for name in stage.inputs if known[name] is not None}
        for name, is_required in stage.inputs.items():
            if not is_required or name in given:
                continue
            if name != "visible":
                raise RequestError(f"'{stage}' needs {name}, and this call has none: pass {name}=")
            ones = torch.ones((), dtype=torch.bool, device=self.q.device)
            given[name] = ones.expand(1, 1, 1, self.k.shape[2])
        return given

    @property
    def request(self) -> Request:
        """The call without its tensors."""
        (batch, num_heads, num_queries, head_dim), (num_keys, value_dim) = self.q.shape, self.v.shape[2:]
        visibility = self.visibility
        mask: MaskKind = "none" if visibility.mask is None else "keys" if visibility.is_by_key else "pairs"
        has_gaps = self.mechanism.find_reach(num_heads) is not None and self.alignment is None
        return Request(
            self.mechanism, num_queries, num_keys, head_dim, value_dim, num_heads, batch, visibility.causal, mask,
            self.dropout, self.q.dtype, self.q.device.type, has_gaps,
        )  # fmt: skip


def at_least_float(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of norms and sums: fp32, or fp64 if the inputs are fp64."""
    return torch.promote_types(dtype, torch.float32)


def refuse_mixer(mechanism: Mechanism) -> None:
    """Refuse a mixer, which takes the place of a model's attention and has no queries and keys."""
    if mechanism.mixer is not None:
        raise RequestError(
            f"'{mechanism}' is a module in place of attention, without queries, keys and values; put it into a model "
            f"with attnlab.install(model, '{mechanism}')"
        )


def check_sizes(**sizes: object) -> None:
    """Refuse sizes that are not positive integers."""
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise RequestError(f"{name} must be a positive integer, not {size!r}")


def register_backward(operator: Any, backward: Callable[..., Any], num_tensors: int, num_options: int) -> None:
    """Register the backward pass of an operator whose second output is saved for it.

    The first inputs of the operator are `num_tensors` tensors and `num_options` options. `backward` gets the gradient,
    the saved output, these tensors and these options.
    """

    def save_inputs(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(output[1], *inputs[:num_tensors])
        ctx.options, ctx.num_inputs = inputs[num_tensors : num_tensors + num_options], len(inputs)

    def call_backward(ctx: Any, grad: Tensor | None, _: Tensor | None) -> tuple[Tensor | None, ...]:
        gradients = () if grad is None else backward(grad.contiguous(), *ctx.saved_tensors, *ctx.options)
        return (*gradients, *[None] * (ctx.num_inputs - len(gradients)))

    operator.register_autograd(call_backward, setup_context=save_inputs)
