"""The runs of one phase and size: figures of each arm's seeds, scores of their examples, and their pairing."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any, Literal

import numpy as np

from attnlab.statistics import check_pairing
from attnlab.tasks.scores import LOG_FIGURES, LOWER_IS_BETTER
from attnlab.training import late_step
from attnlab.training.record.plain import unspell

from ..ledger.database import ENDED, Ledger, ResultRow
from ..plan.planning import PlannedRun

Table = Mapping[int, Any]
"""By seed: a number, or a row of examples; None for a run that failed or diverged."""
SHOWN, HONEST = "perplexity", "honest_perplexity"


@dataclass(frozen=True)
class Measured:
    """What is compared of several arms: each arm's table, its scale, and the cluster of each example.

    On the log scale every number is the natural logarithm of the figure.
    """

    tables: Mapping[str, Table]
    scale: Literal["linear", "log"] = "linear"
    clusters: Sequence[str] | None = None


@dataclass(frozen=True)
class RunTable:
    """The runs of one phase and size, by arm and seed, and what became of them."""

    runs: Mapping[str, Mapping[int, PlannedRun]]
    results: Mapping[str, ResultRow]
    ledger: Ledger
    by_id: Mapping[str, PlannedRun]
    """All runs of the study, for the ones that these start from."""

    @classmethod
    def select(
        cls, place: tuple[str, str], arms: Iterable[str], planned: Sequence[PlannedRun],
        results: Mapping[str, ResultRow], ledger: Ledger,
    ) -> RunTable:  # fmt: skip
        """Select the runs of one phase and size, place."""
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
    def figure(self) -> str | None:
        """The figure that decides; None before any run was evaluated."""
        return self._evaluation.get("primary")

    @property
    def floor(self) -> tuple[float, str] | None:
        """What the best trivial strategy scores on these examples, and the strategy; None if unknown."""
        floor = unspell(self._evaluation.get("floor"))
        return None if floor is None else (float(floor), str(self._evaluation.get("floor_strategy", "")))

    @property
    def ceiling(self) -> float | None:
        """The best possible figure; None if there is no such limit."""
        ceiling = unspell(self._evaluation.get("ceiling"))
        return None if ceiling is None else float(ceiling)

    def values(self, arm: str, figure: str) -> dict[int, float | None]:
        """Return each seed's figure; None for a run that failed or diverged, or whose figure is no number."""
        values: dict[int, float | None] = {}
        for seed, run in self.runs[arm].items():
            last = self._final_evaluation(run)
            value = float(unspell(last["figures"]).get(figure, math.nan)) if last else math.nan
            values[seed] = value if math.isfinite(value) else None
        return values

    def _final_evaluation(self, run: PlannedRun) -> Mapping[str, Any] | None:
        row = self.results.get(run.id)
        return row.result.get("last") if row is not None and row.status in ENDED else None

    def shared_seeds(self, *arms: str, figure: str) -> list[int]:
        """List the seeds that have a figure in all of these arms."""
        first, *others = (self.values(arm, figure) for arm in arms)
        return [seed for seed, value in first.items() if None not in (value, *(one.get(seed) for one in others))]

    def measure(self, arms: Sequence[str], figure: str) -> Measured:
        """Return rows of examples where the figure is their mean in every run of these arms, else one number a seed.

        A perplexity is compared by its logarithm, which is the mean loss of a token.
        """
        is_log = figure in LOG_FIGURES
        scale: Literal["linear", "log"] = "log" if is_log else "linear"
        values: dict[str, Table] = {}
        for arm in arms:
            seeds = self.values(arm, figure).items()
            values[arm] = {seed: math.log(value) if is_log and value else value for seed, value in seeds}
        rows, clusters = self._read_examples(values, LOG_FIGURES.get(figure, figure))
        return Measured(rows or values, scale, clusters)

    def _read_examples(
        self, values: Mapping[str, Table], name: str
    ) -> tuple[dict[str, Table] | None, Sequence[str] | None]:  # fmt: skip
        rows: dict[str, Table] = {}
        examples: set[tuple[Any, ...]] = set()
        for arm, seeds in values.items():
            rows_of_arm: dict[int, Any] = {}
            for seed, value in seeds.items():
                run = self.runs[arm][seed].id
                scores = self.ledger.scores(run, name) if value is not None else None
                if value is not None and (scores is None or not np.isclose(scores.mean(), value)):
                    return None, None
                rows_of_arm[seed] = scores
                if scores is not None:
                    ids, clusters = self.ledger.examples(run)
                    examples.add((tuple(ids), None if clusters is None else tuple(clusters)))
            rows[arm] = rows_of_arm
        return (rows, next(iter(examples))[1]) if len(examples) == 1 else (None, None)

    def late_gain(self, arm: str, figure: str) -> float | None:
        """Return what the last fifth of training gained on average over seeds; None if no evaluation shows it.

        Positive is better, in units of the figure; in percent where the figure is compared on the log scale.
        """
        gains = []
        for run in self.runs[arm].values():
            last = self._final_evaluation(run)
            if last is None:
                continue
            before = self._value_at(run.id, late_step(int(last["step"])), figure)
            now = float(unspell(last["figures"]).get(figure, math.nan))
            if before is None or not math.isfinite(now):
                continue
            if figure in LOG_FIGURES:
                gains.append(100 * (before / now - 1))
            else:
                gains.append(before - now if figure in LOWER_IS_BETTER else now - before)
        return float(np.mean(gains)) if gains else None

    def _value_at(self, run: str, step: int, figure: str) -> float | None:
        lines = {line["step"]: line for line in self.ledger.lines(run, "evaluation")}
        value = unspell(lines[step].get(figure)) if step in lines else None
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else None

    def explain_unpaired(self, baseline: str, arm: str, seeds: Sequence[int]) -> str:
        """Say why the runs of two arms are not paired; empty if they are."""
        ours: dict[str, dict[str, str]] = {}
        theirs: dict[str, dict[str, str]] = {}
        for seed in seeds:
            hashes = [self._shared_hashes(self.runs[one][seed]) for one in (baseline, arm)]
            for hashes_by_seed, own, other in ((ours, *hashes), (theirs, *hashes[::-1])):
                hashes_by_seed[str(seed)] = {what: _keep_common(own[what], other.get(what, {})) for what in own}
        return check_pairing(ours, theirs).reason

    def _shared_hashes(self, run: PlannedRun) -> dict[str, Any]:
        """Return what a run has in common with those of its seed, and what the run has that it starts from."""
        pairing = self.ledger.pairing(run.id) or {}
        hashes = {
            f"what '{run.phase}' trains on": pairing.get("batches", ""),
            f"what '{run.phase}' is evaluated on": pairing.get("evaluation", ""),
        }
        if run.parent is None:
            return {**hashes, "the start of the weights": pairing.get("weights", {})}
        # Weights that were trained differ, as they should; those that they came from must not.
        return {**hashes, **self._shared_hashes(self.by_id[run.parent])}


def _keep_common(own: Any, other: Any) -> Any:
    """Reduce hashes by weight to the weights that both arms have."""
    return json.dumps({name: own[name] for name in sorted(own.keys() & other.keys())}) if isinstance(own, dict) else own


def explain_leak(table: RunTable, arm: str, baseline: str, figure: str) -> str:
    """Compare the perplexity of an arm that sees the future with its leak-free one and the baseline's, if measured."""
    honest, shown = (_known_values(table, arm, name) for name in (HONEST, SHOWN))
    if not honest:
        return f"{figure} was measured with access to future tokens; this task has no leak-free figure"
    count = f" (mean of {len(honest)} seeds)" if len(honest) > 1 else ""
    text = f"fed nothing but the past its perplexity is {fmean(honest):.4g}{count}, not the {fmean(shown):.4g} it shows"
    other = _known_values(table, baseline, HONEST) or _known_values(table, baseline, SHOWN)
    return f"{text}; the baseline's is {fmean(other):.4g}" if other else text


def _known_values(table: RunTable, arm: str, figure: str) -> list[float]:
    return [value for value in table.values(arm, figure).values() if value is not None]
