"""A study's figures, checked against the per-example scores and the evaluations recorded with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.training.record.plain import unspell

from .finding import IntegrityFinding, IntegrityKind, list_first
from .runs import PhaseRuns


def check_recorded(runs: PhaseRuns) -> Iterator[IntegrityFinding]:
    """Find figures that are not the mean of their per-example scores, or differ from their evaluation."""
    wrong = list(differences(runs))
    if wrong:
        yield IntegrityFinding(
            IntegrityKind.SUMMARY_DIFFERS,
            f"{len(wrong)} figures of '{runs.phase}' differ from what was recorded with them: {list_first(wrong, 3)}",
            places=tuple(wrong),
        )


def differences(runs: PhaseRuns) -> Iterator[str]:
    """Yield each figure that differs, and what it differs from."""
    for run, row in runs.ended:
        last = row.result.get("last")
        if not last:
            continue
        lines = {line["step"]: line for line in runs.evaluations(run)}
        for name, value in unspell(last["figures"]).items():
            scores = runs.scores(run, name)
            if scores is not None and len(scores) and not np.isclose(scores.mean(), value):
                yield f"{run.title}: {name} {value:.6g}, and the mean of its {len(scores)} examples {scores.mean():.6g}"
            recorded = lines.get(last["step"], {}).get(name, value)
            if not np.array_equal(recorded, value, equal_nan=True):
                yield f"{run.title}: {name} {value:.6g}, and the evaluation of step {last['step']} {recorded:.6g}"
