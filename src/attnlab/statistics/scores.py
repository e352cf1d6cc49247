"""Scores as they come in: one number a seed, or one for each seed and example; checked once, and paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator

from attnlab.errors import StatisticsError

Numbers = NDArray[np.float64]
Storable = Annotated[Numbers, PlainValidator(np.asarray), PlainSerializer(np.ndarray.tolist)]
"""Numbers that pydantic writes as a list."""

MOST_SEEDS = 1000
"""More than anyone trains: what comes with more is a score an example, which says nothing about other seeds."""
LARGEST = 1e100
"""Squares of larger numbers, summed, leave the range of a double."""


@dataclass(frozen=True)
class ArmScores:
    """The scores of one arm, [seed] or [seed, example], and the names of its seeds.

    failed: the seeds whose run has no score. alone: the score of each seed that failed in the other arm of a pair.
    num_examples: examples per seed, None if there is one number per seed. num_clusters: clusters that the examples were
    merged into, None if they are independent. df_examples: degrees of freedom of the columns, one fewer than there are
    if it is None.
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
        """How many seeds have a score."""
        return len(self.seeds)

    @property
    def num_runs(self) -> int:
        """How many runs there were, with a score or without."""
        return len(self.seeds) + len(self.failed) + len(self.alone)

    @property
    def per_seed(self) -> Numbers:
        """One number a seed: its score, or the mean over its examples."""
        return self.values if self.values.ndim == 1 else self.values.mean(axis=1)

    def without_examples(self) -> ArmScores:
        """Return the arm with one number per seed."""
        return replace(self, values=self.per_seed)

    def of_seeds(self, seeds: Sequence[str]) -> ArmScores:
        """Return the scores of these seeds, in this order; those of others stand alone."""
        scores = dict(zip(self.seeds, self.per_seed.tolist(), strict=True))
        places = [self.seeds.index(seed) for seed in seeds]
        alone = tuple((seed, score) for seed, score in scores.items() if seed not in set(seeds))
        return replace(self, seeds=tuple(seeds), values=self.values[places], alone=alone)


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation (n − 1) and number of seeds of one arm."""

    mean: float
    sd: float
    n: int

    @classmethod
    def of(cls, arm: ArmScores) -> Summary:
        """Sum an arm up."""
        return cls(float(arm.per_seed.mean()), sd_of(arm.per_seed), arm.num_seeds)

    def check(self, name: str) -> None:
        """Raise one clear error where these are no mean, SD and number of seeds."""
        if not (isinstance(self.n, int) and self.n >= 1):
            raise StatisticsError(f"the {name}'s number of seeds must be a whole number from 1 on, and {self.n!r} came")
        if not (math.isfinite(self.mean) and abs(self.mean) <= LARGEST):
            raise StatisticsError(f"the {name}'s mean must be a number, and {self.mean!r} came")
        if self.n > 1 and not (math.isfinite(self.sd) and 0 <= self.sd <= LARGEST):
            raise StatisticsError(f"the {name}'s SD must be a number from 0 on, and {self.sd!r} came")

    def moments(self) -> tuple[float, float, int]:
        """Return mean, SD and number; the SD of one seed is unknown."""
        return self.mean, self.sd if self.n > 1 else math.nan, self.n

    def __str__(self) -> str:
        shown = "" if math.isnan(self.sd) else f" ± {self.sd:.4g}"
        return f"{self.mean:.5g}{shown} (n = {self.n})"


def sd_of(values: Numbers) -> float:
    """Return the standard deviation with n − 1, NaN for one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def read_arms(baseline: Any, variant: Any, paired: bool) -> tuple[ArmScores, ArmScores]:
    """Read both arms; raise one clear error where they are no scores, or do not fit together.

    Paired, a seed that failed in one arm leaves the other's comparison too, and stays counted as failed.
    """
    first, second = read_arm("baseline", baseline), read_arm("variant", variant)
    if first.values.ndim != second.values.ndim:
        raise StatisticsError(
            f"the baseline's scores have the shape {list(first.values.shape)} and the variant's "
            f"{list(second.values.shape)}; both must be [seed], or both [seed, example]"
        )
    if first.num_examples != second.num_examples:
        raise StatisticsError(
            f"the baseline has {first.num_examples} examples a seed and the variant {second.num_examples}; both arms "
            "must be asked the same examples, in the same order"
        )
    if not paired:
        return first, second
    _check_same_seeds(first, second)
    both = [seed for seed in first.seeds if seed in second.seeds]
    if not both:
        raise StatisticsError("no seed has a score in both arms, so that nothing can be paired")
    return first.of_seeds(both), second.of_seeds(both)


def _check_same_seeds(first: ArmScores, second: ArmScores) -> None:
    ours, theirs = {*first.seeds, *first.failed}, {*second.seeds, *second.failed}
    if ours == theirs:
        return
    alone = min(ours ^ theirs)
    raise StatisticsError(
        f"a paired comparison needs the same seeds in both arms; {len(ours)} came for the baseline and {len(theirs)} "
        f"for the variant, and seed '{alone}' is in one of them alone. Give None as the score of a run that failed, "
        "or compare with paired=False"
    )


def read_arm(name: str, scores: Any) -> ArmScores:
    """Read one arm's scores: finite numbers, [seed] or [seed, example], by the seed's name or in order.

    None in place of a seed's score or row is a run that failed or diverged.
    """
    if isinstance(scores, Mapping):
        rows = {str(seed): row for seed, row in scores.items()}
        if len(rows) < len(scores):
            raise StatisticsError(f"two seeds of the {name} have the same name: {', '.join(map(str, scores))}")
    elif isinstance(scores, list | tuple):
        rows = {str(number): row for number, row in enumerate(scores, start=1)}
    else:
        table = _as_numbers(name, scores)
        _check_shape(name, table)
        rows = {str(number): row for number, row in enumerate(table, start=1)}
    finished = {seed: row for seed, row in rows.items() if row is not None}
    if rows and not finished:
        raise StatisticsError(f"every run of the {name} failed: there is no score to compare")
    values = _as_numbers(name, list(finished.values()))
    _check_shape(name, values)
    _check_finite(name, values, list(finished))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    failed = tuple(seed for seed in rows if seed not in finished)
    num_examples = None if values.ndim == 1 else values.shape[1]
    return ArmScores(name, tuple(finished), values, failed, num_examples=num_examples)


def _as_numbers(name: str, scores: Any) -> Numbers:
    try:
        found = np.asarray(scores)
    except (ValueError, TypeError, OverflowError) as error:
        raise StatisticsError(
            f"the {name}'s scores are no table of numbers: every seed needs the same number of examples ({error})"
        ) from error
    # Text that looks like numbers is refused too: a score that is text was misread somewhere before.
    if found.dtype.kind not in "iufb":
        kinds = {"U": "text", "S": "text", "c": "complex numbers", "O": "something else"}
        shown = repr(scores)
        shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
        raise StatisticsError(
            f"the {name}'s scores must be numbers, and {kinds.get(found.dtype.kind, str(found.dtype))} came: {shown}"
        )
    return found.astype(np.float64)


def _check_shape(name: str, values: Numbers) -> None:
    if values.ndim not in (1, 2) or values.size == 0:
        raise StatisticsError(
            f"the {name}'s scores must be one number a seed, or rows [seed, example]; they have the shape "
            f"{list(values.shape)}"
        )
    if len(values) > MOST_SEEDS:
        raise StatisticsError(
            f"the {name} has {len(values)} seeds, more than {MOST_SEEDS}. If these are scores of examples, give them "
            "as [seed, example]: a test over examples alone says nothing about another seed"
        )


def _check_finite(name: str, values: Numbers, seeds: Sequence[str]) -> None:
    wrong = ~np.isfinite(values)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise StatisticsError(
            f"the {name}'s score of seed '{seeds[place[0]]}' is {values[place]}. A run that failed or diverged has no "
            "score: give None in its place, and it is counted as failed"
        )
    largest = float(np.abs(values).max())
    if largest > LARGEST:
        raise StatisticsError(
            f"the {name} has a score of {largest:.3g}; scores beyond {LARGEST:g} cannot be squared. Give them in "
            "another unit"
        )
