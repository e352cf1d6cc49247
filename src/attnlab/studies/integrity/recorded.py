"""The figures a study goes by, against what it recorded beside them: scores of single examples, and the evaluation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from attnlab.training.record.plain import unspell

from .finding import Finding, list_first
from .runs import StageRuns
from .summaries import CHECK


def check_recorded(runs: StageRuns) -> Iterator[Finding]:
    """Find figures that are not the mean of their examples' scores, or not those of the evaluation they come from."""
    wrong = list(differences(runs))
    if wrong:
        yield Finding(
            CHECK,
            f"{len(wrong)} figures of '{runs.stage}' are not what was recorded beside them: {list_first(wrong, 3)}",
            places=tuple(wrong),
        )


def differences(runs: StageRuns) -> Iterator[str]:
    """Yield each figure that differs, and from what."""
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
