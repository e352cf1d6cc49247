"""A mechanism beside its two peers, forward and backward on the same inputs: torch's SDPA, which is what one pays
today, and eager, the reference as it stands, which is what one would write without attnlab."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from attnlab.mechanisms import Mechanism

from .attend import attend
from .choose import explain
from .measure import BUDGET, Cost, TrainingStep, measure, peak_memory, show_bytes, training_step

EAGER_LIMIT = 2e9
"""The most memory, in bytes, that eager is allowed."""

PROBE_LENGTH = 64
"""A length at which eager always fits, from which its memory at others is foretold."""


@dataclass(frozen=True)
class Setting:
    """What stays the same over all lengths."""

    batch: int = 1
    num_heads: int = 4
    head_dim: int = 64
    causal: bool = True
    dtype: torch.dtype = torch.float32

    def inputs(self, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, random and at every call the same."""
        shape = (3, self.batch, self.num_heads, length, self.head_dim)
        q, k, v = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(self.dtype)
        return q, k, v

    def parameters(self, mechanism: Mechanism) -> dict[str, Tensor]:
        """Return a mechanism's learned parameters as they start."""
        declared = mechanism.parameters(self.num_heads, self.head_dim)
        generator = torch.Generator().manual_seed(0)
        return {
            name: torch.empty(p.shape).uniform_(p.low, p.high, generator=generator).to(self.dtype)
            for name, p in declared.items()
        }


@dataclass(frozen=True)
class Comparison:
    """What a mechanism costs at one length and by which kernel, and what its peers cost.

    `left_out` says why there is no cost of eager, where there is none.
    """

    mechanism: Mechanism
    length: int
    kernel: str
    reason: str
    own: Cost
    sdpa: Cost
    eager: Cost | None
    left_out: str = ""


def compare(
    mechanism: Mechanism,
    length: int,
    setting: Setting = Setting(),
    kernel: str = "auto",
    budget: float = BUDGET,
) -> Comparison:
    """Measure a mechanism and its peers at one length."""
    chosen, reason = choice(mechanism, length, setting, kernel)
    steps = {"own": own_step(mechanism, length, setting, chosen), "sdpa": sdpa_step(length, setting)}
    left_out = why_not_eager(mechanism, length, setting, chosen)
    if not left_out:
        steps["eager"] = own_step(mechanism, length, setting, "reference")
    costs = measure(steps, budget)
    return Comparison(
        mechanism, length, chosen, reason, costs["own"], costs["sdpa"], costs.get("eager"), left_out
    )


def choice(mechanism: Mechanism, length: int, setting: Setting, kernel: str) -> tuple[str, str]:
    """Return the kernel that will be measured, and why it is that one."""
    if kernel != "auto":
        return kernel, "it was asked for"
    explanation = explain(mechanism, length=length, causal=setting.causal)
    return explanation.kernel, explanation.reason


def why_not_eager(mechanism: Mechanism, length: int, setting: Setting, kernel: str) -> str:
    """Say why eager is not measured at this length; an empty string where it is."""
    if kernel == "reference":
        return "it is the kernel measured"
    probe = peak_memory(own_step(mechanism, PROBE_LENGTH, setting, "reference"))
    foretold = probe * (length / PROBE_LENGTH) ** 2
    if foretold > EAGER_LIMIT:
        return f"it would take about {show_bytes(foretold)}, and {show_bytes(EAGER_LIMIT)} are allowed"
    return ""


def own_step(mechanism: Mechanism, length: int, setting: Setting, kernel: str) -> TrainingStep:
    """Return the mechanism's training step; its learned parameters get gradients too."""
    parameters = setting.parameters(mechanism)

    def own(q: Tensor, k: Tensor, v: Tensor, *values: Tensor) -> Tensor:
        learned = dict(zip(parameters, values, strict=True))
        return attend(q, k, v, mechanism, causal=setting.causal, kernel=kernel, parameters=learned)

    return training_step(own, *setting.inputs(length), *parameters.values())


def sdpa_step(length: int, setting: Setting) -> TrainingStep:
    """Return the training step of torch's own scaled-dot-product attention."""

    def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=setting.causal)

    return training_step(sdpa, *setting.inputs(length))
