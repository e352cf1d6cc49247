"""share(qk), share(kv) and share(qkv): tied projections, with fewer parameters.

The first of the tied parts keeps its weights: the queries', under share(kv) the keys'. Separate modules hold the same
parameters; a fused module holds fewer columns, and repeats its output.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from attnlab.errors import InstallError
from attnlab.mechanisms import SharedProjections

from .attention_modules import AttentionModule
from .projections import Part, Projection, StandIn, check_forward, describe_unknown, in_width, unwrap_adapter


def list_tied_parts(share: SharedProjections) -> tuple[Part, ...]:
    """List the parts that share weights, first the one whose weights are kept."""
    tied: dict[str, tuple[Part, ...]] = {"qk": ("q", "k"), "kv": ("k", "v"), "qkv": ("q", "k", "v")}
    return tied.get(share.what, ())


def check_sharing(share: SharedProjections, attention: AttentionModule) -> None:
    """Refuse a module whose projections cannot share weights."""
    parts = list_tied_parts(share)
    if not parts:
        return
    where = f"'{attention.name}' ({type(attention.module).__name__})"
    if attention.projections is None:
        why = describe_unknown(attention.module, attention.name)
        raise InstallError(f"'{share}' ties projections, and {why}")
    shared = [attention.projections[part] for part in parts]
    sizes = {(in_width(projection.module), projection.width) for projection in shared}
    if len(sizes) > 1:
        shapes = ", ".join(f"{p.name} {in_width(p.module)} → {p.width}" for p in shared)
        grouped = "; its key heads are grouped" if attention.num_key_heads != attention.num_heads else ""
        raise InstallError(f"'{share}' needs projections of one size, and those of {where} differ: {shapes}{grouped}")
    if len({projection.module.bias is None for projection in shared}) > 1:
        raise InstallError(f"'{share}' needs projections alike, and only some of those of {where} have a bias")
    if len({projection.is_fused for projection in shared}) > 1:
        names = " and ".join(sorted({projection.name for projection in shared}))
        raise InstallError(f"'{share}' cannot tie {names} of {where}: one is fused with another projection")
    for projection in shared:
        check_forward(projection.module)
        if getattr(attention.module, projection.name) is not unwrap_adapter(getattr(attention.module, projection.name)):
            raise InstallError(
                f"'{projection.name}' of {where} has an adapter (peft) already; install '{share}' first, adapters after"
            )


class Tie:
    """Separate modules that hold the parameters of the first one."""

    def __init__(self, projections: Sequence[Projection]) -> None:
        self.first, *self.others = (projection.module for projection in projections)
        for module in self.others:
            module.weight, module.bias = self.first.weight, self.first.bias

    def undo(self) -> None:
        """Give every module its own parameters, with the current values."""
        for module in self.others:
            for name in ("weight", "bias"):
                shared = getattr(self.first, name)
                if shared is not None:
                    setattr(module, name, nn.Parameter(shared.detach().clone(), shared.requires_grad))


class FusedTie(StandIn):
    """Replaces the forward of a fused module [q k v] that holds only [q v], [q k] or [q].

    The module's attributes keep the full width, so that its structure is still recognised.
    """

    def __init__(self, projections: Sequence[Projection]) -> None:
        self.start, self.width, self.num_tied = projections[0].start, projections[0].width, len(projections)
        self.take_place(projections[0].module)
        self.is_conv = isinstance(self.module, Conv1D)
        self.change(self.shorten)

    def __call__(self, x: Tensor) -> Tensor:
        """Compute [q k v] from fewer columns."""
        return self.repeat(self.original(x), -1)

    def original(self, x: Tensor) -> Tensor:
        """Compute what the module holds; not by the module's forward, since Conv1D's needs the full width."""
        if self.before is not None:
            return self.before(x)
        weight, bias = self.module.weight, self.module.bias
        assert isinstance(weight, Tensor)
        assert not isinstance(bias, nn.Module)
        return functional.linear(x, weight.T if self.is_conv else weight, bias)

    def change(self, to: Callable[[Tensor, int], Tensor]) -> None:
        """Replace weight and bias."""
        for name in ("weight", "bias"):
            old = getattr(self.module, name)
            if old is not None:
                new = to(old.detach(), 1 if self.is_conv and name == "weight" else 0)
                setattr(self.module, name, nn.Parameter(new, old.requires_grad))

    def shorten(self, full: Tensor, axis: int) -> Tensor:
        """Keep the first tied part, and the parts that are not tied."""
        end = self.start + self.width * self.num_tied
        rest = full.narrow(axis, end, full.shape[axis] - end)
        return torch.cat([full.narrow(axis, 0, self.start + self.width), rest], axis)

    def repeat(self, short: Tensor, axis: int) -> Tensor:
        """Repeat the tied part for each of the tied projections."""
        end = self.start + self.width
        before, tied, rest = short.split([self.start, self.width, short.shape[axis] - end], axis)
        return torch.cat([before, *[tied] * self.num_tied, rest], axis)

    def undo(self) -> None:
        """Give the module its full weight, with the current values."""
        super().undo()
        self.change(self.repeat)


def tie(share: SharedProjections, attention: AttentionModule) -> Tie | FusedTie | None:
    """Tie a layer's projections, if the stage shares any."""
    parts = list_tied_parts(share)
    if not parts or attention.projections is None:
        return None
    projections = [attention.projections[part] for part in parts]
    return FusedTie(projections) if projections[0].is_fused else Tie(projections)
