"""What a ledger knows of one stage and size: figures of each arm's seeds, their examples' scores, and their pairs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnlab.statistics import check_pairing
from attnlab.training.record.plain import unspell

from .ledger import Ledger, ResultRow
from .plan import PlannedRun
from .remains import ENDED

Table = Mapping[int, Any]
"""By seed: a number, or a row of examples; None for a run that failed or diverged."""


@dataclass(frozen=True)
class Evidence:
    """The runs of one stage and size, by arm and seed, and what became of them."""

    runs: Mapping[str, Mapping[int, PlannedRun]]
    results: Mapping[str, ResultRow]
    ledger: Ledger
    parents: Mapping[str, PlannedRun]

    def figure(self) -> str | None:
        """Return the figure that decides, where any run has one."""
        for seeds in self.runs.values():
            for run in seeds.values():
                row = self.results.get(run.id)
                if row is not None and row.result.get("last"):
                    return str(row.result["last"]["primary"])
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

    def tables(self, arms: Sequence[str], figure: str) -> dict[str, Table]:
        """Return rows of examples where the figure is their mean in every run of these arms, else one number a seed."""
        values = {arm: self.values(arm, figure) for arm in arms}
        rows: dict[str, dict[int, Any]] = {arm: {} for arm in arms}
        examples: set[tuple[str, ...]] = set()
        for arm, seeds in values.items():
            for seed, value in seeds.items():
                found = self.ledger.scores(self.runs[arm][seed].id, figure) if value is not None else None
                if value is not None and (found is None or not np.isclose(found[1].mean(), value)):
                    return {**values}
                rows[arm][seed] = None if found is None else found[1]
                examples |= set() if found is None else {tuple(found[0])}
        return {**rows} if len(examples) == 1 else {**values}

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
            f"what '{run.stage}' trains on": own.get("batches", ""),
            f"what '{run.stage}' is evaluated on": own.get("evaluation", ""),
        }
        if run.parent is None:
            return {**found, "the start of the weights": own.get("weights", {})}
        # Weights that were trained differ, as they should; those that they came from must not.
        return {**found, **self.shared(self.parents[run.parent])}
