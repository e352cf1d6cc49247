"""What a ledger knows of one phase and size: figures of each arm's seeds, their examples' scores, and their pairs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Measured:
    """What is compared of several arms: each arm's table, its scale, and the cluster of each example.

    On the log scale every number is the natural logarithm of the figure.
    """

    tables: Mapping[str, Table]
    scale: Literal["linear", "log"] = "linear"
    clusters: Sequence[str] | None = None


@dataclass(frozen=True)
class Evidence:
    """The runs of one phase and size, by arm and seed, and what became of them."""

    runs: Mapping[str, Mapping[int, PlannedRun]]
    results: Mapping[str, ResultRow]
    ledger: Ledger
    parents: Mapping[str, PlannedRun]

    def figure(self) -> str | None:
        """Return the figure that decides, where any run has one."""
        last = self._any_evaluation()
        return None if last is None else str(last["primary"])

    def floor(self) -> tuple[float, str] | None:
        """Return what the best trivial strategy scores on these examples, and the strategy; None where unknown."""
        last = self._any_evaluation() or {}
        floor = unspell(last.get("floor"))
        return None if floor is None else (float(floor), str(last.get("floor_strategy", "")))

    def ceiling(self) -> float | None:
        """Return the best figure there can be; None where there is no such limit."""
        ceiling = unspell((self._any_evaluation() or {}).get("ceiling"))
        return None if ceiling is None else float(ceiling)

    def _any_evaluation(self) -> Mapping[str, Any] | None:
        """Return the last evaluation of the first run that has one; figure, floor and ceiling are the same in all."""
        for seeds in self.runs.values():
            for run in seeds.values():
                row = self.results.get(run.id)
                if row is not None and row.result.get("last"):
                    last: Mapping[str, Any] = row.result["last"]
                    return last
        return None

    def values(self, arm: str, figure: str) -> dict[int, float | None]:
        """Return each seed's figure; None for a run that failed or diverged, or whose figure is no number."""
        found: dict[int, float | None] = {}
        for seed, run in self.runs[arm].items():
            row = self.results.get(run.id)
            last = row.result.get("last") if row is not None and row.status in ENDED else None
            value = float(unspell(last["figures"]).get(figure, math.nan)) if last else math.nan
            found[seed] = value if math.isfinite(value) else None
        return found

    def measure(self, arms: Sequence[str], figure: str) -> Measured:
        """Return rows of examples where the figure is their mean in every run of these arms, else one number a seed.

        A perplexity is compared by its logarithm, which is the mean loss of a token.
        """
        is_log = figure in LOG_FIGURES
        scale: Literal["linear", "log"] = "log" if is_log else "linear"
        values: dict[str, Table] = {}
        for arm in arms:
            own = self.values(arm, figure)
            values[arm] = {seed: math.log(value) if is_log and value else value for seed, value in own.items()}
        rows = self._rows(values, LOG_FIGURES.get(figure, figure))
        if rows is None:
            return Measured(values, scale)
        return Measured(rows[0], scale, rows[1])

    def _rows(
        self, values: Mapping[str, Table], name: str
    ) -> tuple[dict[str, Table], Sequence[str] | None] | None:  # fmt: skip
        rows: dict[str, Table] = {}
        asked: set[tuple[Any, ...]] = set()
        for arm, seeds in values.items():
            own: dict[int, Any] = {}
            for seed, value in seeds.items():
                run = self.runs[arm][seed].id
                scores = self.ledger.scores(run, name) if value is not None else None
                if value is not None and (scores is None or not np.isclose(scores.mean(), value)):
                    return None
                own[seed] = scores
                if scores is not None:
                    ids, clusters = self.ledger.examples(run)
                    asked.add((tuple(ids), None if clusters is None else tuple(clusters)))
            rows[arm] = own
        if len(asked) != 1:
            return None
        return rows, next(iter(asked))[1]

    def late_gain(self, arm: str, figure: str) -> float | None:
        """Return what the last fifth of training gained on average over seeds; None where no evaluation tells.

        Positive is better, in units of the figure; in percent where the figure is compared on the log scale.
        """
        gains = []
        for run in self.runs[arm].values():
            row = self.results.get(run.id)
            last = row.result.get("last") if row is not None and row.status in ENDED else None
            if last is None:
                continue
            before = self._evaluation_at(run.id, late_step(int(last["step"])), figure)
            now = float(unspell(last["figures"]).get(figure, math.nan))
            if before is None or not math.isfinite(now):
                continue
            if figure in LOG_FIGURES:
                gains.append(100 * (before / now - 1))
            else:
                gains.append(before - now if figure in LOWER_IS_BETTER else now - before)
        return float(np.mean(gains)) if gains else None

    def _evaluation_at(self, run: str, step: int, figure: str) -> float | None:
        lines = {line["step"]: line for line in self.ledger.lines(run, "evaluation")}
        value = unspell(lines[step].get(figure)) if step in lines else None
        return float(value) if isinstance(value, int | float) and math.isfinite(value) else None

    def unpaired(self, baseline: str, arm: str, seeds: Sequence[int]) -> str:
        """Say why the runs of two arms are no pairs, or nothing where they are."""
        hashes: list[dict[str, dict[str, str]]] = [{}, {}]
        for seed in seeds:
            ours, theirs = (self.shared(self.runs[one][seed]) for one in (baseline, arm))
            for number, own in enumerate((ours, theirs)):
                hashes[number][str(seed)] = {}
                for what, value in own.items():
                    if isinstance(value, dict):  # only what both have can be the same
                        other = (theirs, ours)[number].get(what, {})
                        value = json.dumps({name: value[name] for name in sorted(value.keys() & other.keys())})
                    hashes[number][str(seed)][what] = value
        return check_pairing(*hashes).reason

    def shared(self, run: PlannedRun) -> dict[str, Any]:
        """Return what a run has in common with those of its seed, and what the run has that it starts from."""
        own = self.ledger.pairing(run.id) or {}
        found = {
            f"what '{run.phase}' trains on": own.get("batches", ""),
            f"what '{run.phase}' is evaluated on": own.get("evaluation", ""),
        }
        if run.parent is None:
            return {**found, "the start of the weights": own.get("weights", {})}
        # Weights that were trained differ, as they should; those that they came from must not.
        return {**found, **self.shared(self.parents[run.parent])}
