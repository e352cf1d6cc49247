"""The results of `attnlab mechanisms --page`: kernels, costs, agreement with the reference, growth, weights, audits."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import torch
from torch import Tensor

from attnlab.audits import Audit, audit
from attnlab.charts.growth import GrowthPoint
from attnlab.charts.heatmap import Picture
from attnlab.kernels import Explanation, weights
from attnlab.kernels.comparison import Setting, explain_choice, own_step, sdpa_step
from attnlab.kernels.measure import Measurement, measure
from attnlab.machine import Machine, describe
from attnlab.mechanisms import CATALOG, UNIFORM, Entry, Mechanism, SharedProjections

from .agreement import Agreement, measure_agreement

Progress = Callable[[int, int, str], None]
"""Called with the number of steps done, the total, and the name of the next step."""

# Twenty tokens of five kinds: attention that works finds the earlier tokens of the query's kind.
TOKENS = "ABCDABCEEABCDDABCEAB"

SEEN: Mapping[str, str] = {
    "baseline": "Every key it may see gets some weight, the best ones most.",
    "l2-attention": "The nearest keys win, whatever the length of their vectors.",
    "sparsemax": "Most keys get exactly nothing, the best few share it all.",
    "relu-attention": "Rows sum to anything: divided by the number of keys, not normalised.",
    "cosine-linear": "Weights may be negative: blue values are subtracted.",
    "zero-mask": "A faulty mask: weight outside the grey triangle is on the future.",
}
"""The mechanisms whose weights are drawn, and what each picture shows."""


@dataclass(frozen=True)
class CatalogPlan:
    """Which mechanisms are run, at which sizes, and for how many seconds each is timed."""

    names: Sequence[str] = tuple(UNIFORM)
    checked: Setting = field(default_factory=lambda: Setting(head_dim=32))
    checked_length: int = 200
    timed: Setting = field(default_factory=Setting)
    timed_length: int = 512
    growing: Sequence[str] = ("baseline", "additive", "l1-attention", "relu-attention", "cosine-linear")
    lengths: Sequence[int] = (128, 256, 512, 1024, 2048)
    audited: Sequence[str] = (
        "baseline", "value-bypass", "relu-attention", "cottention", "hard", "undivided-linear", "zero-mask",
        "leaking-mask",
    )  # fmt: skip
    checks: Sequence[str] = (
        "causal leak", "prefix consistency", "padding and batch invariance", "gradient flow", "numerics",
        "magnitude against length",
    )  # fmt: skip
    budget: float = 0.5


PLAN = CatalogPlan()


@dataclass(frozen=True)
class MechanismResult:
    """One mechanism: the kernel chosen, its cost and SDPA's on the same inputs, and its agreement."""

    entry: Entry
    choice: Explanation
    own: Measurement
    sdpa: Measurement
    agreement: Agreement

    @property
    def elsewhere(self) -> str:
        """Where its stage acts if a single call computes the baseline; an empty string if it acts in a call."""
        mechanism = self.choice.request.mechanism
        output = tuple(stage for stage in mechanism.output if stage.changes_output)
        in_a_call = dataclasses.replace(mechanism, share=SharedProjections(), kv_heads=None, output=output)
        if in_a_call != Mechanism() or mechanism == in_a_call:
            return ""
        acts_in_model = mechanism.share != SharedProjections() or mechanism.kv_heads is not None
        return "acts in a model" if acts_in_model else "acts on the loss"

    @property
    def verdict(self) -> str:
        """Whether it agrees, in words."""
        if not self.agreement.holds:
            return "NO"
        return f"as the baseline here: {self.elsewhere}" if self.elsewhere else "yes"

    @property
    def time_ratio(self) -> float:
        """Its time relative to SDPA's."""
        return self.own.seconds / self.sdpa.seconds

    @property
    def memory_ratio(self) -> float:
        """Its peak extra memory relative to SDPA's."""
        return self.own.memory / self.sdpa.memory


@dataclass(frozen=True)
class CatalogResults:
    """All results, and the machine they were measured on."""

    plan: CatalogPlan
    machine: Machine
    mechanisms: Sequence[MechanismResult]
    points: Sequence[GrowthPoint]
    pictures: Sequence[Picture]
    audits: Mapping[str, Audit]
    seconds: float

    @property
    def score(self) -> str:
        """How many mechanisms agree, of those that act in a single call."""
        acting = [result for result in self.mechanisms if not result.elsewhere]
        return f"{sum(result.agreement.holds for result in acting)} of {len(acting)}"

    @property
    def remainder(self) -> str:
        """How many do not act in a single call, and why; an empty string if all do."""
        number = sum(bool(result.elsewhere) for result in self.mechanisms)
        return f"{number} {'acts' if number == 1 else 'act'} only in a model or on the loss" if number else ""

    @property
    def audited(self) -> str:
        """The results of the audits, in words."""
        failed = [name for name, result in self.audits.items() if not result.passed]
        return f"{len(self.audits) - len(failed)} of {len(self.audits)} audited are sound; not: {', '.join(failed)}"

    @property
    def holds(self) -> bool:
        """Whether every mechanism agrees, and the audits fail for the specimens and for nothing else."""
        is_right = all(result.passed != CATALOG[name].specimen for name, result in self.audits.items())
        return is_right and all(result.agreement.holds for result in self.mechanisms)

    @property
    def where_checked(self) -> str:
        """The setting in which the agreement was measured."""
        return f"forward and backward, {describe_setting(self.plan.checked, 'fp32')}, length {self.plan.checked_length}"

    @property
    def where_costs(self) -> str:
        """The setting in which time and memory were measured."""
        return f"forward and backward, {describe_setting(self.plan.timed, 'fp32')}, length {self.plan.timed_length}"


def describe_setting(setting: Setting, dtype: str) -> str:
    """Describe what is the same at all lengths."""
    causal = "causal" if setting.causal else "not causal"
    return f"{causal}, batch {setting.batch}, {setting.num_heads} heads of {setting.head_dim}, {dtype}"


def run_catalog(plan: CatalogPlan, progress: Progress) -> CatalogResults:
    """Run the whole plan."""
    start = perf_counter()
    total = len(plan.names) + len(plan.lengths) + 1 + len(plan.audited)
    mechanisms: list[MechanismResult] = []
    for name in plan.names:
        progress(len(mechanisms), total, name)
        mechanisms.append(_measure_mechanism(CATALOG[name], plan))
    points: list[GrowthPoint] = []
    for number, length in enumerate(plan.lengths):
        progress(len(mechanisms) + number, total, f"growth at length {length}")
        points += _measure_growth(length, plan)
    progress(len(mechanisms) + len(plan.lengths), total, "weights")
    pictures = draw_weights()
    audits: dict[str, Audit] = {}
    for number, name in enumerate(plan.audited):
        progress(total - len(plan.audited) + number, total, f"audit of {name}")
        audits[name] = audit(name, causal=True, checks=plan.checks)
    progress(total, total, "")
    seconds = perf_counter() - start
    return CatalogResults(plan, describe(num_threads=1), mechanisms, points, pictures, audits, seconds)


def _measure_mechanism(entry: Entry, plan: CatalogPlan) -> MechanismResult:
    mechanism, length = UNIFORM[entry.name], plan.timed_length
    agreement = measure_agreement(mechanism, plan.checked_length, plan.checked)
    steps = {"own": own_step(mechanism, length, plan.timed), "sdpa": sdpa_step(length, plan.timed)}
    costs = measure(steps, plan.budget)
    return MechanismResult(entry, explain_choice(mechanism, length, plan.timed), costs["own"], costs["sdpa"], agreement)


def _measure_growth(length: int, plan: CatalogPlan) -> list[GrowthPoint]:
    """Measure the mechanisms whose growth is drawn, in turn, at one length."""
    mechanisms = {name: UNIFORM[name] for name in plan.growing}
    steps = {name: own_step(mechanism, length, plan.timed) for name, mechanism in mechanisms.items()}
    kernels = {name: explain_choice(mechanism, length, plan.timed).kernel for name, mechanism in mechanisms.items()}
    return [
        GrowthPoint(f"{mechanisms[name]} · {kernels[name]}", "attnlab", length, cost.seconds, cost.memory)
        for name, cost in measure(steps, 4 * plan.budget).items()
    ]


def draw_weights() -> list[Picture]:
    """Return the weights of some mechanisms over the same tokens."""
    q, k = _draw_queries_and_keys()
    return [
        Picture(CATALOG[name].line, sentence, weights(q, k, name, causal=True).tolist())
        for name, sentence in SEEN.items()
    ]


def _draw_queries_and_keys(head_dim: int = 16, noise: float = 0.6) -> tuple[Tensor, Tensor]:
    """Draw a vector for each kind of token; a query or key is that of its kind plus noise, [n d]."""
    generator = torch.Generator().manual_seed(0)
    kinds = sorted(set(TOKENS))
    vectors = torch.randn(len(kinds), head_dim, generator=generator)
    clean = vectors[[kinds.index(token) for token in TOKENS]]
    q, k = (clean + noise * torch.randn(clean.shape, generator=generator) for _ in range(2))
    return q, k
