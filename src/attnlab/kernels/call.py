"""What a kernel is given: a Call with the tensors, and a Request that says the same without them, so that a
kernel can be chosen, and explained, before there is any tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from attnlab.mechanisms import Mechanism, Params, Stage

from .visibility import Visibility

MaskKind = Literal["none", "keys", "pairs"]


@dataclass(frozen=True)
class Request:
    """The facts a kernel is chosen by. `mask` says whether padding forbids keys, or a mask forbids single pairs."""

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


@dataclass(frozen=True)
class Call:
    """One attention to compute: q [b h q d], k [b h k d], v [b h k e], and all that decides the result."""

    mechanism: Mechanism
    q: Tensor
    k: Tensor
    v: Tensor
    parameters: Params
    visibility: Visibility
    dropout: float = 0.0
    seed: int = 0

    def params_of(self, stage: Stage) -> Params:
        """Return one stage's learned parameters under their own names."""
        return self.mechanism.params_of(stage, self.parameters)

    @property
    def request(self) -> Request:
        """The call without its tensors."""
        mask = self.visibility.mask
        return Request(
            mechanism=self.mechanism,
            num_queries=self.q.shape[2],
            num_keys=self.k.shape[2],
            head_dim=self.q.shape[3],
            value_dim=self.v.shape[3],
            num_heads=self.q.shape[1],
            batch=self.q.shape[0],
            causal=self.visibility.causal,
            mask="none" if mask is None else "keys" if self.visibility.is_by_key else "pairs",
            dropout=self.dropout,
            dtype=self.q.dtype,
            device=self.q.device.type,
        )


def at_least_float(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype lengths and reductions are held in: fp32, or fp64 where the inputs are."""
    return torch.promote_types(dtype, torch.float32)
