"""The result of a run: whether it finished, stopped early, diverged or was interrupted, and its figures."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from attnlab.notebook import Facts, Showable

from .plain import decode_nonfinite, encode_nonfinite

Status = Literal["finished", "stopped early", "diverged", "interrupted"]
ENDS: tuple[Status, ...] = ("finished", "stopped early", "diverged")
"""The final statuses; an interrupted run can be resumed."""


def late_step(num_steps: int) -> int:
    """Return the step at four fifths of a run, which is always evaluated to see whether the run still improves."""
    return -(-4 * num_steps // 5)


@dataclass(frozen=True)
class Evaluation:
    """The figures of a task at a step."""

    step: int
    primary: str
    figures: Mapping[str, float]
    note: str = ""
    """A remark to show with them, such as that a single class is predicted."""
    floor: float | None = None
    """The primary figure of the best trivial strategy on the same examples."""
    floor_strategy: str = ""
    ceiling: float | None = None
    num_documents: int = 0
    """The number of examples."""
    num_clusters: int = 0
    """The number of clusters that they form; 0 if the examples are independent."""
    tuning: float | None = None
    """The primary figure on the tuning data, by which the best checkpoint is chosen; None if this one decides that."""

    @property
    def value(self) -> float:
        """The primary figure."""
        return self.figures[self.primary]

    @property
    def bounds(self) -> str:
        """Floor and ceiling of the primary figure in words; empty if neither is known."""
        known = [] if self.floor is None else [f"floor {self.floor:.4g}: {self.floor_strategy}"]
        return "; ".join([*known, *([] if self.ceiling is None else [f"ceiling {self.ceiling:g}"])])

    @property
    def sentence(self) -> str:
        """The evaluation in one line."""
        aside = "; ".join(filter(None, (self.bounds, self.note)))
        return f"step {self.step:,}: {self.primary} {self.value:.6g}{f' ({aside})' if aside else ''}"


@dataclass(frozen=True)
class Divergence:
    """Where a run diverged: the step, its data and its figures."""

    step: int
    reason: str
    loss: float
    gradient_norm: float
    lr: float
    segment: str
    epoch: int
    examples: list[str]
    weight_norms: Mapping[str, float]
    """The largest ones, by parameter."""


@dataclass(frozen=True, repr=False)
class Result(Showable):
    """How a run ended, or that it was interrupted, and its figures."""

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

    def facts(self) -> Facts:
        """Return how the run ended, and its figures."""
        rows = [(name, one.sentence) for name, one in (("last", self.last), ("best", self.best)) if one is not None]
        rows += [] if self.loss is None else [("loss", f"{self.loss:.4f} in the last update")]
        rows += [("trained on", f"{self.tokens:,} tokens in {self.seconds:.1f} s")]
        rows += [("parameters", ", ".join(f"{name} {count:,}" for name, count in self.parameters.items()))]
        return Facts("", self.sentence, rows=rows, is_good=False if self.divergence is not None else None)

    def record(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return dict(encode_nonfinite(asdict(self)))

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Read the output of `record`."""
        record = decode_nonfinite(dict(record))
        kinds = {"last": Evaluation, "best": Evaluation, "divergence": Divergence}
        result = cls(**{
            name: kinds[name](**value) if name in kinds and value is not None else value
            for name, value in record.items()
        })  # fmt: skip
        result._check_numbers()
        return result

    def _check_numbers(self) -> None:
        """Raise a TypeError if what must be a number is something else."""
        numbers: dict[str, Any] = {name: getattr(self, name) for name in ("step", "num_steps", "tokens", "seconds")}
        numbers |= {f"parameters.{name}": value for name, value in self.parameters.items()}
        for evaluation in (self.last, self.best):
            numbers |= {} if evaluation is None else {"step of a figure": evaluation.step, **evaluation.figures}
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{name} is a number, not {value!r}")

    @property
    def sentence(self) -> str:
        """The result in one line."""
        sentence = f"{self.status} at step {self.step:,} of {self.num_steps:,}"
        if self.divergence is not None:
            return f"{sentence}: {self.divergence.reason}"
        for name, evaluation in (("last", self.last), ("best", self.best)):
            if evaluation is not None and (name == "last" or self.last is None or evaluation.step != self.last.step):
                sentence += f"; {name} {evaluation.primary} {evaluation.value:.6g} (step {evaluation.step:,})"
        return sentence
