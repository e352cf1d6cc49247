"""The runs of one phase and size: figures of each arm's seeds, scores of their examples, and their pairing."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any, Self

import numpy as np

from attnlab.statistics import check_pairing
from attnlab.statistics.question import Scale
from attnlab.tasks.scores import LOG_FIGURES, LOWER_IS_BETTER
from attnlab.training import late_step
from attnlab.training.plain import decode_nonfinite

from ..ledger.database import ENDED, Ledger, ResultRow
from ..plan.planning import PlannedRun

Table = Mapping[int, Any]
"""By seed: a number, or a row of examples; None for a run that failed or diverged."""
START, SHAPES = "the start of the weights", "the shapes of the weights"
LEAK_FREE = ("leak_free_perplexity", "honest_perplexity")
"""The metric of today, and its name in folders of older studies."""


@dataclass(frozen=True)
class Measured:
    """The scores of several arms, by arm, their scale, and the cluster of each example.

    On the log scale every number is the natural logarithm of the metric.
    """

    tables: Mapping[str, Table]
    scale: Scale = "linear"
    clusters: Sequence[str] | None = None


@dataclass(frozen=True)
class RunTable:
    """The runs of one phase and size, by arm and seed, with the results; by_id: all runs of the study."""

    runs: Mapping[str, Mapping[int, PlannedRun]]
    results: Mapping[str, ResultRow]
    ledger: Ledger
    by_id: Mapping[str, PlannedRun]

    @classmethod
    def select(
        cls, place: tuple[str, str], arms: Iterable[str], planned: Sequence[PlannedRun],
        results: Mapping[str, ResultRow], ledger: Ledger,
    ) -> Self:  # fmt: skip
        """Select the runs of one phase and size, `place`."""
        runs: dict[str, dict[int, PlannedRun]] = {arm: {} for arm in arms}
        for run in planned:
            if (run.phase, run.size) == place:
                runs[run.arm][run.seed] = run
        return cls(runs, results, ledger, {run.id: run for run in planned})

    @cached_property
    def last_evaluations(self) -> list[Mapping[str, Any]]:
        """The last evaluation of every run that has one."""
        rows = (self.results.get(run.id) for seeds in self.runs.values() for run in seeds.values())
        return [row.result["last"] for row in rows if row is not None and row.result.get("last")]

    @property
    def _evaluation(self) -> Mapping[str, Any]:
        # Figure, floor and ceiling are the same in all runs.
        return self.last_evaluations[0] if self.last_evaluations else {}

    @property
    def metric(self) -> str | None:
        """The primary metric; None before any run was evaluated."""
        return self._evaluation.get("primary")

    @property
    def floor(self) -> tuple[float, str] | None:
        """The score of the best trivial strategy on these examples, and the strategy; None if unknown."""
        floor = decode_nonfinite(self._evaluation.get("floor"))
        return None if floor is None else (float(floor), str(self._evaluation.get("floor_strategy", "")))

    @property
    def ceiling(self) -> float | None:
        """The best possible score; None if there is no such limit."""
        ceiling = decode_nonfinite(self._evaluation.get("ceiling"))
        return None if ceiling is None else float(ceiling)

    def values(self, arm: str, metric: str) -> dict[int, float | None]:
        """Return each seed's score; None for a run that failed or diverged, or whose score is not finite."""
        values: dict[int, float | None] = {}
        for seed, run in self.runs[arm].items():
            last = self._final_evaluation(run)
            value = float(decode_nonfinite(last["figures"]).get(metric, math.nan)) if last else math.nan
            values[seed] = value if math.isfinite(value) else None
        return values

    def _final_evaluation(self, run: PlannedRun) -> Mapping[str, Any] | None:
        row = self.results.get(run.id)
        return row.result.get("last") if row is not None and row.status in ENDED else None

    def shared_seeds(self, *arms: str, metric: str) -> list[int]:
        """List the seeds that have a score in all of these arms."""
        first, *others = (self.values(arm, metric) for arm in arms)
        return [seed for seed, value in first.items() if None not in (value, *(one.get(seed) for one in others))]

    def measure(self, arms: Sequence[str], metric: str) -> Measured:
        """Return rows of examples if the metric is their mean in every run of these arms, else one number per seed.

        A perplexity is compared by its logarithm, the mean loss per token.
        """
        is_log = metric in LOG_FIGURES
        values: dict[str, Table] = {}
        for arm in arms:
            seeds = self.values(arm, metric).items()
            values[arm] = {seed: math.log(value) if is_log and value else value for seed, value in seeds}
        rows, clusters = self._read_examples(values, LOG_FIGURES.get(metric, metric))
        return Measured(rows or values, "log" if is_log else "linear", clusters)

    def _read_examples(
        self, values: Mapping[str, Table], name: str
    ) -> tuple[dict[str, Table] | None, Sequence[str] | None]:  # fmt: skip
        rows: dict[str, dict[int, Any]] = {arm: {} for arm in values}
        examples: set[tuple[Any, ...]] = set()
        for arm, seed, value in ((arm, *item) for arm, seeds in values.items() for item in seeds.items()):
            run = self.runs[arm][seed].id
            rows[arm][seed] = scores = None if value is None else self.ledger.scores(run, name)
            if value is None:
                continue
            if scores is None or not np.isclose(scores.mean(), value):
                return None, None
            ids, clusters = self.ledger.examples(run)
            examples.add((tuple(ids), None if clusters is None else tuple(clusters)))
        return ({**rows}, next(iter(examples))[1]) if len(examples) == 1 else (None, None)

    def late_gain(self, arm: str, metric: str) -> float | None:
        """Return the mean gain in the last fifth of training over seeds; None if no evaluation shows it.

        Positive is better, in units of the metric; in percent if the metric is compared on the log scale.
        """
        gains = []
        for seed, now in self.values(arm, metric).items():
            last = self._final_evaluation(run := self.runs[arm][seed])
            # A best checkpoint before the end of training was not still improving.
            if now is None or last is None or last["step"] != self.results[run.id].result.get("step", last["step"]):
                continue
            lines = {line["step"]: line for line in self.ledger.lines(run.id, "evaluation")}
            before = decode_nonfinite(lines.get(late_step(int(last["step"])), {}).get(metric))
            if not isinstance(before, int | float) or not math.isfinite(before):
                continue
            if metric in LOG_FIGURES:
                gains.append(100 * (before / now - 1))
            else:
                gains.append(before - now if metric in LOWER_IS_BETTER else now - before)
        return float(np.mean(gains)) if gains else None

    def list_shared_hashes(self, arm: str, seed: int) -> dict[str, Any]:
        """Return the hashes of what a run shares with runs of the same seed: batches, evaluation set and weights."""
        return self._shared_hashes(self.runs[arm][seed])

    def explain_unpaired(self, baseline: str, arm: str, seeds: Sequence[int], *, has_own_shapes: bool = False) -> str:
        """Return why the runs of two arms are not paired; empty if they are.

        has_own_shapes: whether weights may have another shape in each arm, and then need not start equal.
        """
        first, second = {}, {}
        for seed in seeds:
            ours, theirs = (self._shared_hashes(self.runs[name][seed]) for name in (baseline, arm))
            if has_own_shapes:
                drop_other_shapes(ours, theirs)
            first[str(seed)] = {what: keep_common(ours[what], theirs.get(what, {})) for what in ours}
            second[str(seed)] = {what: keep_common(theirs[what], ours.get(what, {})) for what in theirs}
        return check_pairing(first, second).reason

    def _shared_hashes(self, run: PlannedRun) -> dict[str, Any]:
        """Return hashes of what runs of the same seed share, including those of the run that this one starts from."""
        pairing = self.ledger.pairing(run.id) or {}
        hashes = {
            f"what '{run.phase}' trains on": pairing.get("batches", ""),
            f"what '{run.phase}' is evaluated on": pairing.get("evaluation", ""),
        }
        if run.parent is None:
            return {**hashes, START: pairing.get("weights", {}), SHAPES: pairing.get("shapes", {})}
        # Trained weights differ, as they should; the initial weights that they were trained from must not.
        return {**hashes, **self._shared_hashes(self.by_id[run.parent])}


def drop_other_shapes(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Remove the weights that have another shape in the other arm."""
    shapes = [hashes.get(SHAPES, {}) for hashes in (ours, theirs)]
    other = {name for name in shapes[0].keys() & shapes[1].keys() if shapes[0][name] != shapes[1][name]}
    for hashes in (ours, theirs):
        for what in (START, SHAPES):
            hashes[what] = {name: value for name, value in hashes.get(what, {}).items() if name not in other}


def keep_common(own: Any, other: Any) -> Any:
    """Reduce hashes by weight to the weights that both arms have."""
    return json.dumps({name: own[name] for name in sorted(own.keys() & other.keys())}) if isinstance(own, dict) else own


def explain_leak(table: RunTable, arm: str, baseline: str, metric: str) -> str:
    """Compare the perplexity of an arm that sees the future with its leak-free one and the baseline's, if measured."""

    def list_values(arm: str, *metrics: str) -> list[float]:
        return [value for name in metrics for value in table.values(arm, name).values() if value is not None]

    leak_free, measured = list_values(arm, *LEAK_FREE), list_values(arm, "perplexity")
    if not leak_free:
        return f"{metric} was measured with access to future tokens; this task has no leak-free figure"
    count = f" (mean of {len(leak_free)} seeds)" if len(leak_free) > 1 else ""
    text = f"its perplexity without access to future tokens is {fmean(leak_free):.4g}{count}, not {fmean(measured):.4g}"
    other = list_values(baseline, *LEAK_FREE) or list_values(baseline, "perplexity")
    return f"{text}; the baseline's is {fmean(other):.4g}" if other else text
