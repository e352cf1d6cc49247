"""Linear layers of a model that multiply in bf16, for a while: by the processor's tiles, sums in fp32.

The weights stay as they are, in fp32. A stand-in does it that lies below those of a mechanism, so that value paths and
ties go on acting on what is projected.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from attnlab.errors import InstallError
from attnlab.kernels import products
from attnlab.kernels.amx import has_tiles

from .projections import StandIn

__all__ = ["has_tiles", "low_products", "products"]

LEAST_SIDE, LEAST_WEIGHTS = 32, 4096
"""A weight smaller than this is no faster in bf16: packing it, and calling, takes what the tiles save."""


class Switch:
    """Whether low products are on; one for a model and all copies made of it meanwhile."""

    def __init__(self) -> None:
        self.is_on = True

    def __deepcopy__(self, memo: object) -> Switch:
        return self


class LowProduct(StandIn):
    """Stands in for a linear module's forward, innermost, and multiplies in bf16 while its switch is on."""

    def __init__(self, module: nn.Module, switch: Switch) -> None:
        self.switch = switch
        self.module, self.before = module, None
        above = innermost(module)
        if above is None:
            vars(module)["forward"] = self
        else:
            above.before = self

    def __call__(self, x: Tensor) -> Tensor:
        """Multiply in bf16; what is not fp32 on the CPU goes the usual way."""
        weight, bias = parameters_of(self.module)
        if not self.switch.is_on or self.before is not None or not is_single(x) or not is_single(weight):
            return self.original(x)
        return products.linear(x, weight, bias, is_transposed=type(self.module) is Conv1D)

    def original(self, x: Tensor) -> Tensor:
        """Multiply as the module would; not by its forward, since a tie may make Conv1D narrower than it states."""
        weight, bias = parameters_of(self.module)
        if self.before is not None:
            return self.before(x)
        if type(self.module) is not Conv1D:
            return functional.linear(x, weight, bias)
        assert bias is not None
        return torch.addmm(bias, x.view(-1, x.shape[-1]), weight).view(*x.shape[:-1], -1)

    def undo(self) -> None:
        """Give the place back, above whatever is below."""
        if vars(self.module).get("forward") is self:
            self.step_aside()
            return
        for one in chain(self.module):
            if one.before is self:
                one.before = self.before


@contextmanager
def low_products(model: nn.Module) -> Iterator[int]:
    """Let a model's linear layers multiply in bf16 while inside, gradients too; give the number of layers that do.

    nn.Linear and Conv1D in fp32 on the CPU take part, except small ones, those whose forward another tool has
    replaced, and the head that gives logits of the vocabulary, whose loss is computed from its weight. Which ones do
    is a matter of weights alone, so a row's result is the same in any batch.
    """
    works, reason = has_tiles()
    if not works:
        raise InstallError(f"{reason}; compute in fp32")
    switch = Switch()
    placed = [LowProduct(module, switch) for module in eligible(model)]
    try:
        yield len(placed)
    finally:
        switch.is_on = False
        for one in placed:
            one.undo()


def eligible(model: nn.Module) -> list[nn.Module]:
    """List the linear layers that multiply in bf16."""
    asked = getattr(model, "get_output_embeddings", None)
    head = asked() if asked is not None else None
    return [module for module in model.modules() if module is not head and is_eligible(module)]


def is_eligible(module: nn.Module) -> bool:
    """Tell whether a module is a linear layer that gains by it, and that nobody else has a hand in."""
    if type(module) not in (nn.Linear, Conv1D) or not is_single(module.weight):
        return False
    if not isinstance(vars(module).get("forward"), StandIn | None):
        return False
    if any(isinstance(one, LowProduct) and one.switch.is_on for one in chain(module)):
        return False
    weight, _ = parameters_of(module)
    return min(weight.shape) >= LEAST_SIDE and weight.numel() >= LEAST_WEIGHTS


def parameters_of(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    """Return a linear module's weight and bias."""
    weight, bias = module.weight, module.bias
    assert isinstance(weight, Tensor)
    assert bias is None or isinstance(bias, Tensor)
    return weight, bias


def is_single(x: object) -> bool:
    """Tell whether something is an fp32 tensor on the CPU."""
    return isinstance(x, Tensor) and x.dtype == torch.float32 and x.device.type == "cpu"


def chain(module: nn.Module) -> Iterator[StandIn]:
    """Yield what stands in for a module's forward, from the outside in."""
    one = vars(module).get("forward")
    while isinstance(one, StandIn):
        yield one
        one = one.before


def innermost(module: nn.Module) -> StandIn | None:
    """Return the last of the chain."""
    *_, last = (None, *chain(module))
    return last
