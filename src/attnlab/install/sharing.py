"""share(qk) and share(qkv): projections that are one. The parameters are really tied: there are fewer of them.

The keys (and values) take the queries' weights. Separate modules hold the same parameters; a fused module holds fewer
columns, and repeats what it computes from them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from attnlab.errors import InstallError
from attnlab.mechanisms import Share

from .attention_modules import AttentionModule
from .projections import Part, Projection, StandIn, check_forward, in_width, unwrap_adapter


def tied_parts(share: Share) -> tuple[Part, ...]:
    """Return the parts that are one."""
    return {"qk": ("q", "k"), "qkv": ("q", "k", "v")}.get(share.what, ())  # type: ignore[return-value]


def check_sharing(share: Share, attention: AttentionModule) -> None:
    """Refuse a module whose projections cannot be one."""
    parts = tied_parts(share)
    if not parts:
        return
    where = f"'{attention.name}' ({type(attention.module).__name__})"
    if attention.projections is None:
        raise InstallError(f"'{share}' ties projections, and the structure of {where} is not recognised")
    shared = [attention.projections[part] for part in parts]
    sizes = {(in_width(projection.module), projection.width) for projection in shared}
    if len(sizes) > 1:
        shapes = ", ".join(f"{p.name} {in_width(p.module)} → {p.width}" for p in shared)
        grouped = "; its key heads are grouped" if attention.num_key_heads != attention.num_heads else ""
        raise InstallError(f"'{share}' needs projections of one size, and those of {where} differ: {shapes}{grouped}")
    if len({projection.module.bias is None for projection in shared}) > 1:
        raise InstallError(f"'{share}' needs projections alike, and of those of {where} some have a bias, others none")
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
    """Separate modules that hold one set of parameters; the first lends, the others borrow."""

    def __init__(self, projections: Sequence[Projection]) -> None:
        self.lender, *self.borrowers = (projection.module for projection in projections)
        for module in self.borrowers:
            module.weight, module.bias = self.lender.weight, self.lender.bias

    def undo(self) -> None:
        """Give every borrower parameters of its own, with the values it has now."""
        for module in self.borrowers:
            for name in ("weight", "bias"):
                lent = getattr(self.lender, name)
                if lent is not None:
                    setattr(module, name, nn.Parameter(lent.detach().clone(), lent.requires_grad))


class FusedTie(StandIn):
    """A fused module [q k v] that holds fewer stretches, [q v] or [q], and stands in for its own forward.

    Its stated width stays that of its output, so that its structure is still recognised.
    """

    def __init__(self, projections: Sequence[Projection]) -> None:
        self.width, self.num_tied = projections[0].width, len(projections)
        self.take_place(projections[0].module)
        self.is_conv = isinstance(self.module, Conv1D)
        self.change(self.kept)

    def __call__(self, x: Tensor) -> Tensor:
        """Compute [q k v] from fewer columns."""
        return self.repeated(self.original(x), -1)

    def original(self, x: Tensor) -> Tensor:
        """Compute [q v] or [q]; not by the module's own forward, since Conv1D's insists on its stated width."""
        if self.before is not None:
            return self.before(x)
        weight, bias = self.module.weight, self.module.bias
        assert isinstance(weight, Tensor)
        assert not isinstance(bias, nn.Module)
        return functional.linear(x, weight.T if self.is_conv else weight, bias)

    def change(self, to: Callable[[Tensor, int], Tensor]) -> None:
        """Put other parameters in the place of weight and bias."""
        for name in ("weight", "bias"):
            old = getattr(self.module, name)
            if old is not None:
                new = to(old.detach(), 1 if self.is_conv and name == "weight" else 0)
                setattr(self.module, name, nn.Parameter(new, old.requires_grad))

    def kept(self, full: Tensor, axis: int) -> Tensor:
        """Keep the first of the tied stretches, and what is not tied."""
        end = self.width * self.num_tied
        own = full.narrow(axis, end, full.shape[axis] - end)
        return torch.cat([full.narrow(axis, 0, self.width), own], axis)

    def repeated(self, kept: Tensor, axis: int) -> Tensor:
        """Repeat the tied stretch for each part that it is."""
        tied, own = kept.split([self.width, kept.shape[axis] - self.width], axis)
        return torch.cat([tied] * self.num_tied + [own], axis)

    def undo(self) -> None:
        """Give the module its full weight, with the values it has now."""
        self.step_aside()
        self.change(self.repeated)


def tie(share: Share, attention: AttentionModule) -> Tie | FusedTie | None:
    """Tie a layer's projections as the stage says."""
    parts = tied_parts(share)
    if not parts or attention.projections is None:
        return None
    projections = [attention.projections[part] for part in parts]
    return FusedTie(projections) if projections[0].is_fused else Tie(projections)
