"""A mechanism beside its two peers, forward and backward on the same inputs: torch's SDPA, which is what one
pays today, and eager, the reference as it stands, which is what one would write without attnlab."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from attnlab.mechanisms import Mechanism

from .attend import attend, initial_values
from .choose import Explanation, explain
from .measure import BUDGET, Measurement, TrainingStep, measure, peak_memory, show_bytes, training_step

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


@dataclass(frozen=True)
class KernelComparison:
    """What a mechanism costs at one length, by which kernel and why, and what its peers cost.

    `left_out` says why there is no measurement of eager, where there is none.
    """

    choice: Explanation
    length: int
    own: Measurement
    sdpa: Measurement
    eager: Measurement | None
    left_out: str


def compare(
    mechanism: Mechanism, length: int, setting: Setting, kernel: str = "auto", budget: float = BUDGET
) -> KernelComparison:
    """Measure a mechanism and its peers at one length."""
    choice = explained(mechanism, length, setting, kernel)
    steps = {"own": own_step(mechanism, length, setting, kernel), "sdpa": sdpa_step(length, setting)}
    left_out = why_not_eager(mechanism, length, setting)
    if not left_out:
        steps["eager"] = own_step(mechanism, length, setting, "reference")
    taken = measure(steps, budget)
    return KernelComparison(choice, length, taken["own"], taken["sdpa"], taken.get("eager"), left_out)


def explained(mechanism: Mechanism, length: int, setting: Setting, kernel: str = "auto") -> Explanation:
    """Say which kernel will be measured; refuse one that cannot compute the mechanism."""
    return explain(
        mechanism,
        length,
        causal=setting.causal,
        batch=setting.batch,
        num_heads=setting.num_heads,
        head_dim=setting.head_dim,
        dtype=setting.dtype,
        kernel=kernel,
    )


def why_not_eager(mechanism: Mechanism, length: int, setting: Setting) -> str:
    """Say why eager is not measured at this length; an empty string where it is."""
    probe = peak_memory(own_step(mechanism, PROBE_LENGTH, setting, "reference"))
    foretold = probe * (length / PROBE_LENGTH) ** 2
    if foretold <= EAGER_LIMIT:
        return ""
    return f"it would take about {show_bytes(foretold)}, and {show_bytes(EAGER_LIMIT)} are allowed"


def own_step(mechanism: Mechanism, length: int, setting: Setting, kernel: str = "auto") -> TrainingStep:
    """Return the mechanism's training step; its learned parameters get gradients too."""
    learned = initial_values(mechanism, setting.num_heads, setting.head_dim, setting.head_dim)

    def own(q: Tensor, k: Tensor, v: Tensor, *values: Tensor) -> Tensor:
        given = dict(zip(learned, values, strict=True))
        return attend(q, k, v, mechanism, causal=setting.causal, kernel=kernel, parameters=given)

    return training_step(own, *setting.inputs(length), *learned.values())


def sdpa_step(length: int, setting: Setting) -> TrainingStep:
    """Return the training step of torch's own scaled-dot-product attention."""

    def sdpa(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=setting.causal)

    return training_step(sdpa, *setting.inputs(length))
