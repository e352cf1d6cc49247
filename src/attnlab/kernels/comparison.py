"""A mechanism compared with two peers, forward and backward on the same inputs: torch's SDPA, the standard attention,
and eager, the plain code of the reference that one would write without attnlab."""

import functools
from dataclasses import asdict, dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from attnlab.mechanisms import Mechanism

from .attend import attend
from .choose import Explanation, explain
from .measure import BUDGET, Measurement, TrainingStep, measure, peak_memory, show_bytes, training_step
from .parameters import initial_values

EAGER_LIMIT = 2e9
"""The most memory, in bytes, that eager may take."""

PROBE_LENGTH = 64
"""A length at which eager always fits; its memory at other lengths is extrapolated from it."""

VOCAB_SIZE = 64
"""The number of token ids, for a mechanism that needs them."""


@dataclass(frozen=True)
class Setting:
    """What stays the same over all lengths."""

    batch: int = 1
    num_heads: int = 4
    head_dim: int = 64
    causal: bool = True
    dtype: torch.dtype = torch.float32

    def inputs(self, length: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return random queries, keys and values, the same at every call."""
        shape = (3, self.batch, self.num_heads, length, self.head_dim)
        q, k, v = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(self.dtype)
        return q, k, v


@dataclass(frozen=True)
class KernelComparison:
    """The cost of a mechanism at one length, its kernel, and the cost of its peers.

    left_out: why eager was not measured, or an empty string.
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
    choice = explain_choice(mechanism, length, setting, kernel)
    steps = {"own": own_step(mechanism, length, setting, kernel), "sdpa": sdpa_step(length, setting)}
    left_out = explain_missing_eager(mechanism, length, setting)
    if not left_out:
        steps["eager"] = own_step(mechanism, length, setting, "reference")
    taken = measure(steps, budget)
    return KernelComparison(choice, length, taken["own"], taken["sdpa"], taken.get("eager"), left_out)


def explain_choice(mechanism: Mechanism, length: int, setting: Setting, kernel: str = "auto") -> Explanation:
    """Explain which kernel will be measured; refuse one that cannot compute the mechanism."""
    return explain(mechanism, length, kernel=kernel, **asdict(setting))


def explain_missing_eager(mechanism: Mechanism, length: int, setting: Setting) -> str:
    """Return why eager is not measured at this length, or an empty string."""
    probe = peak_memory(own_step(mechanism, PROBE_LENGTH, setting, "reference"))
    predicted = probe * (length / PROBE_LENGTH) ** 2
    if predicted <= EAGER_LIMIT:
        return ""
    return f"it would take about {show_bytes(predicted)}; the limit is {show_bytes(EAGER_LIMIT)}"


def own_step(mechanism: Mechanism, length: int, setting: Setting, kernel: str = "auto") -> TrainingStep:
    """Return the mechanism's training step, which computes gradients of its learned parameters too."""
    sizes = (setting.num_heads, setting.head_dim, setting.head_dim)
    learned = initial_values(mechanism, *sizes, vocab_size=VOCAB_SIZE)
    tokens = torch.arange(length) % VOCAB_SIZE if mechanism.find_stages_needing("tokens") else None
    needs_x = bool(mechanism.find_stages_needing("x"))

    def run(q: Tensor, k: Tensor, v: Tensor, x: Tensor, *values: Tensor) -> Tensor:
        given = dict(zip(learned, values, strict=True))
        x_given = x if needs_x else None
        return attend(
            q, k, v, mechanism, causal=setting.causal, kernel=kernel, parameters=given, x=x_given, tokens=tokens
        )

    q, k, v = setting.inputs(length)
    x = torch.randn(v.shape, generator=torch.Generator().manual_seed(2)).to(v) if needs_x else v.new_zeros(())
    return training_step(run, q, k, v, x, *learned.values())


def sdpa_step(length: int, setting: Setting) -> TrainingStep:
    """Return the training step of torch's scaled-dot-product attention."""
    run = functools.partial(F.scaled_dot_product_attention, is_causal=setting.causal)
    return training_step(run, *setting.inputs(length))
