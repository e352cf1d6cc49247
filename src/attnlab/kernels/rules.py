"""The weights stages written for a tile in place: scores become weights in the same memory, and the gradient of the
weights becomes that of the scores, from the weights alone.

    softmax, softmax1   ds = w (dw − Σ w dw)          sigmoid     ds = dw w (1 − w)
    relu                ds = dw where w > 0           identity    ds = dw
    sparsemax           ds = dw − mean of dw over the support, on the support
    entmax15            ds = √w (dw − Σ √w dw / Σ √w)
    argmax              ds = 0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.mechanisms import REGISTRY, Weights

aten = torch.ops.aten


@dataclass(frozen=True)
class Rule:
    """What a forbidden score is filled with; scores → weights; gradient of the weights → of the scores."""

    fill: float
    forward: Callable[[Tensor], object]
    backward: Callable[[Tensor, Tensor], object]


def by_stage(name: str) -> Callable[[Tensor], object]:
    """Use the stage's own equation where it works on a row without its length."""

    def forward(s: Tensor) -> object:
        stage = REGISTRY[name]()
        assert isinstance(stage, Weights)
        return s.copy_(stage(s, s.new_ones(()), {}))

    return forward


def softmax(s: Tensor) -> object:
    """Normalise each row in place."""
    return aten._softmax.out(s, -1, False, out=s)


def softmax_backward(dw: Tensor, w: Tensor) -> object:
    """Give each score its softmax gradient in place."""
    return aten._softmax_backward_data.out(dw, w, -1, w.dtype, grad_input=dw)


def softmax1_backward(dw: Tensor, w: Tensor) -> object:
    """The same product rule as softmax's; a row of weights sums to less than 1, which changes nothing in it."""
    return dw.sub_((dw * w).sum(-1, keepdim=True)).mul_(w)


def sparsemax_backward(dw: Tensor, w: Tensor) -> object:
    """Project the gradient onto the support."""
    support = w > 0
    dw.masked_fill_(~support, 0)
    mean = dw.sum(-1, keepdim=True) / support.sum(-1, keepdim=True).clamp(min=1)
    return dw.sub_(mean).masked_fill_(~support, 0)


def entmax15_backward(dw: Tensor, w: Tensor) -> object:
    """Project the gradient with the weight √w."""
    r = w.sqrt()
    dw.mul_(r)
    mean = dw.sum(-1, keepdim=True) / r.sum(-1, keepdim=True).clamp(min=torch.finfo(r.dtype).tiny)
    return dw.sub_(r * mean)


RULES: dict[str, Rule] = {
    "softmax": Rule(-torch.inf, softmax, softmax_backward),
    "softmax1": Rule(-torch.inf, by_stage("softmax1"), softmax1_backward),
    "relu": Rule(0, torch.relu_, lambda dw, w: aten.threshold_backward.grad_input(dw, w, 0, grad_input=dw)),
    "sigmoid": Rule(-torch.inf, torch.sigmoid_, lambda dw, w: aten.sigmoid_backward.grad_input(dw, w, grad_input=dw)),
    "identity": Rule(0, lambda s: s, lambda dw, w: dw),
    "sparsemax": Rule(-torch.inf, by_stage("sparsemax"), sparsemax_backward),
    "entmax15": Rule(-torch.inf, by_stage("entmax15"), entmax15_backward),
    "argmax": Rule(-torch.inf, by_stage("argmax"), lambda dw, w: dw.zero_()),
}
