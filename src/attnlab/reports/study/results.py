"""The results of every arm in every phase and size, from the ledger: figures, statuses, costs, and the answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.statistics import Summary
from attnlab.statistics.scores import LARGEST, read_arm
from attnlab.studies.answers.analysis import Answer
from attnlab.studies.answers.study_folder import Record
from attnlab.studies.file.match_consistency import AA
from attnlab.studies.ledger.database import ResultRow
from attnlab.studies.plan.planning import PlannedRun

DIVERGED, FAILED, WAITING = "diverged", "failed", "not ended"
NOTHING = Summary(math.nan, math.nan, 0)
BUSY = 1.5
"""On an idle machine runs of one arm differ less in speed."""


@dataclass(frozen=True)
class ArmRow:
    """One arm in one phase and size."""

    phase: str
    size: str
    arm: str
    figure: str
    is_baseline: bool
    values: Mapping[int, float | None]
    """The primary metric of each seed; None if it has none."""
    statuses: Mapping[int, str]
    by_seed: Mapping[int, ResultRow]
    """The results of the runs that have ended."""
    answer: Answer | None

    @property
    def results(self) -> list[ResultRow]:
        """The results of the runs that have ended."""
        return list(self.by_seed.values())

    @property
    def summary(self) -> Summary:
        """Mean, SD and number of the seeds that have a figure."""
        return summarize(self.values)

    @property
    def num_lost(self) -> int:
        """The number of runs that failed or diverged."""
        return sum(status in (DIVERGED, FAILED) for status in self.statuses.values())

    @property
    def seconds(self) -> float:
        """The mean training time of a run."""
        return summarize({row.run: row.result.get("seconds") for row in self.results}).mean

    @property
    def speed_ratio(self) -> float:
        """How many times as fast the fastest run was as the slowest; 1 if that is unknown."""
        speeds = [speed for row in self.results if (speed := read_number(_compute_speed(row.result)))]
        return max(speeds) / min(speeds) if speeds else 1.0

    @property
    def operations(self) -> float:
        """The mean number of counted operations of a run's updates."""
        return summarize({row.run: row.result.get("operations") for row in self.results}).mean

    @property
    def tokens_per_second(self) -> float:
        """The mean training speed of a run."""
        return summarize({row.run: _compute_speed(row.result) for row in self.results}).mean

    def read_result(self, seed: int) -> Mapping[str, Any]:
        """Return the result of a seed's run; empty if it has not ended."""
        return self.by_seed[seed].result if seed in self.by_seed else {}

    def count_parameters(self, which: str) -> int | None:
        """Return the number of parameters of the model (total), or of those that are trained."""
        counts = [row.result.get("parameters", {}).get(which) for row in self.results]
        return next((int(number) for number in counts if number is not None), None)


@dataclass(frozen=True)
class PhaseResults:
    """One phase and size of a study, with a row for every arm, the baseline's first."""

    phase: str
    size: str
    figure: str
    smallest: float | None
    rows: tuple[ArmRow, ...]
    floor: tuple[float, str] | None = None
    """The score of the best trivial strategy on the evaluation examples, and its name; None if unknown."""
    aa: str | None = None
    """The arm that is the baseline under other seeds; None without one."""

    @property
    def title(self) -> str:
        """The phase and size, as titles write them."""
        return f"{self.phase}, {self.size}"


def collect_results(record: Record) -> list[PhaseResults]:
    """Return every phase and size of a study, in the order of its design."""
    answers = {(answer.phase, answer.size, answer.arm): answer for answer in record.answers}
    places = []
    for phase in record.design.phases:
        for size in record.design.sizes:
            table = record.table(phase.name, size)
            metric = table.metric or ""
            rows = []
            for arm in list_arms(record):
                runs = table.runs[arm]
                rows.append(ArmRow(
                    phase.name, size, arm, metric, arm == record.design.baseline, table.values(arm, metric),
                    {seed: find_status(record, run) for seed, run in runs.items()},
                    {seed: record.results[run.id] for seed, run in runs.items() if run.id in record.results},
                    answers.get((phase.name, size, arm)),
                ))  # fmt: skip
            aa = AA if record.design.aa else None
            places.append(PhaseResults(phase.name, size, metric, phase.smallest, tuple(rows), table.floor, aa))
    return places


def list_arms(record: Record) -> list[str]:
    """List the arms: the baseline, then the others as they were planned."""
    return list(dict.fromkeys([record.design.baseline, *(run.arm for run in record.runs), *record.design.arms]))


def find_status(record: Record, run: PlannedRun) -> str:
    """Return the status of a run in one or two words."""
    if run.id in record.results:
        return record.results[run.id].status
    return FAILED if run.id in record.given_up else WAITING


def summarize(values: Mapping[Any, Any]) -> Summary:
    """Return mean, SD and count of numbers, ignoring missing values."""
    numbers = {key: number for key, value in values.items() if (number := read_number(value)) is not None}
    return Summary.of(read_arm("arm", numbers).per_seed) if numbers else NOTHING


def read_number(value: Any) -> float | None:
    """Return a value of a ledger as a finite number, None if it is not one; a ledger spells out NaN and infinities."""
    number = math.nan if value is None else float(value)
    return number if abs(number) <= LARGEST else None


def describe_busy(rows: Sequence[ArmRow]) -> str:
    """Say that times of arms tell little, if seeds of one arm differ much in speed; else an empty string."""
    ratio, arm = max(((row.speed_ratio, row.arm) for row in rows), default=(1.0, ""))
    if ratio < BUSY:
        return ""
    return (
        f"seeds of {arm} differ {ratio:.1f} times in speed, as on a busy machine, so times of arms tell little: "
        "attnlab run --dry-run measures arms in turn"
    )


def _compute_speed(result: Mapping[str, Any]) -> float | None:
    seconds = result.get("seconds")
    return result.get("tokens", 0) / seconds if seconds else None
