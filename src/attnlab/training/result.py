"""What became of a run: finished, stopped early, diverged, or interrupted; and the figures it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .record.plain import spell, unspell

Status = Literal["finished", "stopped early", "diverged", "interrupted"]
ENDS: tuple[Status, ...] = ("finished", "stopped early", "diverged")
"""An interrupted run goes on; these do not."""


def late_step(num_steps: int) -> int:
    """Return the step, at four fifths of a run, after which it is always evaluated: does it still gain from there?"""
    return -(-4 * num_steps // 5)


@dataclass(frozen=True)
class Evaluation:
    """The figures of a task after a step."""

    step: int
    primary: str
    figures: Mapping[str, float]
    note: str = ""
    """What must be said with them: how many classes were predicted, and what always the same would reach."""

    floor: float | None = None
    """What the best trivial strategy reaches on the same examples, in the unit of the deciding figure."""
    floor_strategy: str = ""
    ceiling: float | None = None
    num_documents: int = 0
    """How many examples were evaluated."""
    num_clusters: int = 0
    """How many clusters they form; 0 where each example is on its own."""

    @property
    def value(self) -> float:
        """The figure that decides."""
        return self.figures[self.primary]

    @property
    def bounds(self) -> str:
        """What the deciding figure is held against, in words; empty where nothing is known."""
        known = [] if self.floor is None else [f"floor {self.floor:.4g}: {self.floor_strategy}"]
        return "; ".join([*known, *([] if self.ceiling is None else [f"ceiling {self.ceiling:g}"])])

    @property
    def sentence(self) -> str:
        """What is said of it."""
        aside = "; ".join(filter(None, (self.bounds, self.note)))
        return f"step {self.step:,}: {self.primary} {self.value:.6g}{f' ({aside})' if aside else ''}"


@dataclass(frozen=True)
class Divergence:
    """Where a run diverged: what the step had before it, and what came of it."""

    step: int
    reason: str
    loss: float
    gradient_norm: float
    lr: float
    segment: str
    epoch: int
    examples: list[str]
    weight_norms: Mapping[str, float]
    """The largest, by parameter."""


@dataclass(frozen=True)
class Result:
    """What became of a run."""

    status: Status
    step: int
    num_steps: int
    loss: float | None = None
    """Of the last update."""
    last: Evaluation | None = None
    best: Evaluation | None = None
    divergence: Divergence | None = None
    tokens: int = 0
    seconds: float = 0.0
    parameters: Mapping[str, int] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        plain: dict[str, Any] = spell(asdict(self))  # a loss that diverged is no number of JSON
        return plain

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Result:
        """Read what `record` gave."""
        record = unspell(dict(record))
        kinds = {"last": Evaluation, "best": Evaluation, "divergence": Divergence}
        return cls(**{
            name: kinds[name](**value) if name in kinds and value is not None else value
            for name, value in record.items()
        })  # fmt: skip

    @property
    def sentence(self) -> str:
        """What is said of it."""
        said = f"{self.status} at step {self.step:,} of {self.num_steps:,}"
        if self.divergence is not None:
            return f"{said}: {self.divergence.reason}"
        for name, found in (("last", self.last), ("best", self.best)):
            if found is not None and (name == "last" or self.last is None or found.step != self.last.step):
                said += f"; {name} {found.primary} {found.value:.6g} (step {found.step:,})"
        return said
