"""What a kernel is given: a Call with the tensors, and a Request that says the same without them, so that a
kernel can be chosen, and explained, before there is any tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from attnlab.errors import RequestError
from attnlab.mechanisms import Mechanism, Params, Positions, Stage

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
    """One attention to compute: q [b h q d], k [b h k d], v [b h k e], and all that decides the result.

    `positions` are there where a stage of the mechanism asks for them.
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

    def params_of(self, stage: Stage) -> Params:
        """Return one stage's learned parameters under their own names."""
        return self.mechanism.params_of(stage, self.parameters)

    def needs_of(self, stage: Stage, visible: Tensor | None) -> dict[str, Any]:
        """Return what a stage asks for beside its tensors, by name; `visible` is None where all pairs are."""
        known = {"positions": self.positions, "visible": visible}
        given = {name: known[name] for name in stage.needs if known[name] is not None}
        for name, is_required in stage.needs.items():
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
