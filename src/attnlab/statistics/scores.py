"""Input scores: one number per seed, or one per seed and example; checked once, and paired by seed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator

from attnlab.errors import StatisticsError

Numbers = NDArray[np.float64]
Storable = Annotated[Numbers, PlainValidator(np.asarray), PlainSerializer(np.ndarray.tolist)]
"""Numbers that pydantic writes as a list."""
MAX_SEEDS = 1000
"""Nobody trains more: a larger input is one score per example, by mistake."""
LARGEST = 1e100
"""Sums of squares of larger numbers overflow a double."""


@dataclass(frozen=True)
class ArmScores:
    """The scores of one arm, [seed] or [seed, example], and the names of its seeds.

    failed: seeds whose run has no score. alone: scores of seeds that failed in the other arm of a pair. num_examples:
    None if there is one number per seed. num_clusters: None if the examples are independent. df_examples: degrees of
    freedom of the columns, None for their number less one.
    """

    name: str
    seeds: tuple[str, ...]
    values: Storable
    failed: tuple[str, ...] = ()
    alone: tuple[tuple[str, float], ...] = ()
    num_examples: int | None = None
    num_clusters: int | None = None
    df_examples: float | None = None

    @property
    def num_seeds(self) -> int:
        """Seeds with a score."""
        return len(self.seeds)

    @property
    def num_runs(self) -> int:
        """Runs with or without a score."""
        return len(self.seeds) + len(self.failed) + len(self.alone)

    @property
    def per_seed(self) -> Numbers:
        """One number per seed: its score, or the mean over its examples."""
        return self.values if self.values.ndim == 1 else self.values.mean(axis=1)

    @cached_property
    def score_by_seed(self) -> dict[str, float]:
        """The score of each seed by name, including those without a pair."""
        return dict([*zip(self.seeds, self.per_seed.tolist(), strict=True), *self.alone])

    def select_seeds(self, seeds: Sequence[str]) -> Self:
        """Return the scores of these seeds, in this order; the others become `alone`."""
        places = [self.seeds.index(seed) for seed in seeds]
        alone = tuple((seed, score) for seed, score in self.score_by_seed.items() if seed not in set(seeds))
        return replace(self, seeds=tuple(seeds), values=self.values[places], alone=alone)


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation (n − 1) and number of seeds of one arm."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, per_seed: Numbers) -> Self:
        """Summarize one number per seed."""
        return cls(float(per_seed.mean()), sd_of(per_seed), len(per_seed))

    def check(self, name: str) -> None:
        """Raise an error if these are not a mean, an SD and a number of seeds."""
        if not (isinstance(self.n, int) and self.n >= 1):
            raise StatisticsError(f"the {name}'s number of seeds must be an integer of at least 1, not {self.n!r}")
        if not (math.isfinite(self.mean) and abs(self.mean) <= LARGEST):
            raise StatisticsError(f"the {name}'s mean must be a finite number, not {self.mean!r}")
        if self.n > 1 and not (math.isfinite(self.sd) and 0 <= self.sd <= LARGEST):
            raise StatisticsError(f"the {name}'s SD must be a finite number of at least 0, not {self.sd!r}")

    def moments(self) -> tuple[float, float, int]:
        """Return mean, SD and number; the SD of one seed is NaN."""
        return self.mean, self.sd if self.n > 1 else math.nan, self.n

    def __str__(self) -> str:
        sd = "" if math.isnan(self.sd) else f" ± {self.sd:.4g}"
        return f"{self.mean:.5g}{sd} (n = {self.n})"


def sd_of(values: Numbers) -> float:
    """Return the standard deviation with n − 1, NaN for one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def read_arms(baseline: Any, variant: Any, paired: bool) -> tuple[ArmScores, ArmScores]:
    """Read both arms; if they are paired, keep the seeds that have a score in both."""
    first, second = read_arm("baseline", baseline), read_arm("variant", variant)
    if first.values.ndim != second.values.ndim:
        raise StatisticsError(
            f"the baseline's scores have the shape {list(first.values.shape)} and the variant's "
            f"{list(second.values.shape)}; both must be [seed], or both [seed, example]"
        )
    if first.num_examples != second.num_examples:
        raise StatisticsError(
            f"the baseline has {first.num_examples} examples per seed and the variant {second.num_examples}; both arms "
            "must be evaluated on the same examples, in the same order"
        )
    if not paired:
        return first, second
    ours, theirs = {*first.seeds, *first.failed}, {*second.seeds, *second.failed}
    if ours != theirs:
        raise StatisticsError(
            f"a paired comparison needs the same seeds in both arms: the baseline has {len(ours)} and the variant "
            f"{len(theirs)}, and seed '{min(ours ^ theirs)}' is only in one of them. Give None as the score of a run "
            "that failed, or compare with paired=False"
        )
    both = [seed for seed in first.seeds if seed in second.seeds]
    if not both:
        raise StatisticsError("no seed has a score in both arms, so there are no pairs to compare")
    return first.select_seeds(both), second.select_seeds(both)


def read_arm(name: str, scores: Any) -> ArmScores:
    """Read one arm's scores: finite numbers, [seed] or [seed, example], in order or by the seed's name.

    None in place of a seed's score or row is a run that failed or diverged.
    """
    if isinstance(scores, Mapping):
        rows = {str(seed): row for seed, row in scores.items()}
        if len(rows) < len(scores):
            raise StatisticsError(f"two seeds of the {name} have the same name: {', '.join(map(str, scores))}")
    else:
        scores = scores if isinstance(scores, list | tuple) else _as_table(name, scores)
        rows = {str(number): row for number, row in enumerate(scores, start=1)}
    finished = {seed: row for seed, row in rows.items() if row is not None}
    if rows and not finished:
        raise StatisticsError(f"every run of the {name} failed, so there is no score to compare")
    values = _as_table(name, list(finished.values()))
    _check_finite(name, values, list(finished))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    failed = tuple(seed for seed in rows if seed not in finished)
    num_examples = None if values.ndim == 1 else values.shape[1]
    return ArmScores(name, tuple(finished), values, failed, num_examples=num_examples)


def _as_table(name: str, scores: Any) -> Numbers:
    try:
        array = np.asarray(scores)
    except (ValueError, TypeError, OverflowError) as error:
        raise StatisticsError(
            f"the {name}'s scores are not a table of numbers: every seed needs the same number of examples ({error})"
        ) from error
    # Text that looks like numbers is refused too: a score that is text was misread earlier.
    if array.dtype.kind not in "iufb":
        kinds = {"U": "text", "S": "text", "c": "complex numbers", "O": "other objects"}
        text = repr(scores) if len(repr(scores)) <= 60 else f"{repr(scores)[:60]}…"
        kind = kinds.get(array.dtype.kind, str(array.dtype))
        raise StatisticsError(f"the {name}'s scores must be numbers, not {kind}: {text}")
    values = array.astype(np.float64)
    if values.ndim not in (1, 2) or values.size == 0:
        raise StatisticsError(
            f"the {name}'s scores must be one number per seed, or rows [seed, example]; they have the shape "
            f"{list(values.shape)}"
        )
    if len(values) > MAX_SEEDS:
        raise StatisticsError(
            f"the {name} has {len(values)} seeds, more than {MAX_SEEDS}. If these are scores of examples, give them "
            "as [seed, example]: a test over examples alone does not generalize to other seeds"
        )
    return values


def _check_finite(name: str, values: Numbers, seeds: Sequence[str]) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise StatisticsError(
            f"the {name}'s score of seed '{seeds[place[0]]}' is {values[place]}. Give None for a run that failed or "
            "diverged, and it is counted as failed"
        )
    largest = float(np.abs(values).max())
    if largest > LARGEST:
        raise StatisticsError(f"the {name} has a score of {largest:.3g}, beyond {LARGEST:g}; give it in another unit")
