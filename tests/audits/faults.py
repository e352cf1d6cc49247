"""Kernels that are broken on purpose, and single checks that tests ask for."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.audits import Finding, Findings
from attnlab.kernels import blockwise, reference
from attnlab.kernels.call import Call
from attnlab.kernels.visibility import Visibility
from attnlab.mechanisms import Dims, Parameter, Params, Value, Weights, stage

SLEEPING = "dot | softmax | sleeping"


def one_too_many(seen: Visibility) -> Visibility:
    """See one token of the future."""
    return dataclasses.replace(seen, first=seen.offset + 1)


def one_padded_key(seen: Visibility) -> Visibility:
    """Count the first key of the padding."""
    if seen.mask is None or seen.mask.shape[2] != 1:
        return seen
    hidden = ~seen.mask
    first = hidden & (hidden.cumsum(-1) == 1)
    return dataclasses.replace(seen, mask=seen.mask | first)


def from_the_start(seen: Visibility) -> Visibility:
    """Forget where queries stand against a longer cache."""
    return dataclasses.replace(seen, first=0)


def plant(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Visibility], Visibility], *checks: str, causal: bool = True
) -> Findings:
    """Break the blockwise kernel, which then sees other keys than it may, and run some checks of a mechanism."""

    def attend(call: Call) -> Tensor:
        return reference.attend(dataclasses.replace(call, visibility=change(call.visibility)))

    monkeypatch.setattr(blockwise, "attend", attend)
    return attnlab.audit("dot | relu(divide=n)", causal=causal, checks=checks).findings


def run_check(line: str, check: str, causal: bool | None = None) -> Finding:
    """Run one check of a mechanism."""
    return attnlab.audit(line, causal=causal, checks=[check]).findings[check]


def register_sleeping() -> str:
    """Register a convolution of values over tokens that starts at the identity, and needs more than the new tokens;
    return a line with it."""

    @stage("sleeping")
    @dataclasses.dataclass(frozen=True)
    class Sleeping(Value):
        """w0 v_t + w1 v_(t-1), padded by itself."""

        uses_x = False
        uses_first = False

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            start = lambda head, channel, tap: (tap == 0) * 1.0  # noqa: E731
            return {"w": Parameter((dims.num_key_heads, dims.value_dim, 2), start=start)}

        def __call__(self, t: Tensor, x: Tensor, first: Tensor, p: Params) -> Tensor:
            w = p["w"][:, None]
            return t * w[..., 0] + torch.nn.functional.pad(t, (0, 0, 1, 0))[..., :-1, :] * w[..., 1]

    return SLEEPING


def register_cancelling() -> None:
    """Register heat_sum, whose learned parameter cancels."""

    @stage("heat_sum")
    @dataclasses.dataclass(frozen=True)
    class HeatSum(Weights):
        """relu(t·s) / Σ relu(t·s), which t does not change; added to s instead, it does, by very little."""

        pointwise: ClassVar[bool] = False
        is_added: bool = False

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"t": Parameter((dims.num_heads,), 1.0, 1.0)}

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            t = p["t"][:, None, None]
            weights = ((scores + 1e-8 * t if self.is_added else t * scores).relu()).masked_fill(~visible, 0)
            return weights / weights.sum(-1, keepdim=True).clamp_min(1e-30)
