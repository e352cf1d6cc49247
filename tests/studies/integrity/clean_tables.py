"""Random tables without a fault: how often summaries, differences, copied tasks, units and grids raise a finding.

`python -m tests.studies.integrity.clean_tables 2000` prints the counts.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attnlab.studies.integrity import IntegrityKind, TableHints, judge, read_table

Draw = Callable[[np.random.Generator], str]
ARMS = ("base", "ours", "other")


def draw_summaries(rng: np.random.Generator) -> str:
    """Draw seeds beside `Mean ± Std`, all rounded from the same digits; the SD is divided by n or n − 1."""
    num, decimals, digits, ddof = (int(rng.integers(*limits)) for limits in ((3, 11), (0, 4), (1, 4), (0, 2)))
    rows = ["method," + ",".join(f"s{seed}" for seed in range(num)) + ",Mean ± Std"]
    for arm in ARMS:
        values = rng.normal(rng.uniform(40, 95), rng.uniform(0.1, 3), num)
        summary = f"{values.mean():.{digits}f} ± {values.std(ddof=ddof):.{digits}f}"
        rows.append(",".join([arm, *(f"{value:.{decimals}f}" for value in values), summary]))
    return "\n".join(rows)


def draw_differences(rng: np.random.Generator) -> str:
    """Draw tasks, in half of the tables each with its differences from the first arm, absolute or in percent."""
    num_arms, num_tasks, decimals = (int(rng.integers(*limits)) for limits in ((3, 8), (1, 5), (1, 3)))
    is_relative, is_shown = rng.random() < 0.3, rng.random() < 0.5
    scores = rng.uniform(40, 95, num_tasks) + rng.normal(0, 1.5, (num_arms, num_tasks))
    names = [name for task in range(num_tasks) for name in (f"T{task}", f"Δ T{task}")[: 1 + is_shown]]
    rows = [",".join(["method", *names])]
    for arm in range(num_arms):
        cells = [f"m{arm}" if arm else "base"]
        for score, first in zip(scores[arm], scores[0], strict=True):
            change = 100 * (score / first - 1) if is_relative else score - first
            cells += [f"{score:.{decimals}f}", f"{change:+.{decimals}f}" if arm else "–"][: 1 + is_shown]
        rows.append(",".join(cells))
    return "\n".join(rows)


def draw_spreads(rng: np.random.Generator) -> str:
    """Draw means with SDs between 0.05 and 5 points, in percent or as fractions; an SD may have one decimal more."""
    is_fraction, decimals = rng.random() < 0.5, int(rng.integers(1, 4))
    rows = ["method,acc"]
    for arm in ARMS:
        scale, digits = (0.01, decimals + 2) if is_fraction else (1.0, decimals)
        mean, sd = rng.uniform(40, 95) * scale, 10 ** rng.uniform(-1.3, 0.7) * scale
        rows.append(f"{arm},{mean:.{digits}f} ± {sd:.{digits + int(rng.integers(0, 2))}f}")
    return "\n".join(rows)


def draw_tasks(rng: np.random.Generator) -> str:
    """Draw similar tasks whose scores share most of the difference between arms."""
    num_arms, num_tasks, decimals = (int(rng.integers(*limits)) for limits in ((3, 9), (2, 9), (1, 3)))
    scores = rng.uniform(60, 90) + rng.normal(0, 3, num_tasks) + rng.normal(0, 1, (num_arms, 1))
    scores = scores + rng.normal(0, 0.5, scores.shape)
    rows = ["method," + ",".join(f"T{task} acc" for task in range(num_tasks))]
    rows += [f"m{arm}," + ",".join(f"{score:.{decimals}f}" for score in scores[arm]) for arm in range(num_arms)]
    return "\n".join(rows)


def draw_grids(rng: np.random.Generator) -> str:
    """Draw means of usual tasks, or of EM and F1 of several tasks, in percent or as fractions, of some examples."""
    num_examples, decimals, is_fraction = int(rng.choice([277, 500, 2000])), int(rng.integers(1, 4)), rng.random() < 0.5
    scale, digits = (1.0, decimals + 2) if is_fraction else (100.0, decimals)
    tasks = [f"{name} {metric}" for name in ("SQuAD", "B", "C")[: rng.integers(2, 4)] for metric in ("EM", "F1")]
    tasks = tasks if rng.random() < 0.5 else ["SST-2", "CoLA", "RTE", "MRPC", "STS-B"]
    rows = ["method,n_test," + ",".join(tasks)]
    for arm in ARMS:
        exact = [round(rng.uniform(0.4, 0.95) * num_examples) / num_examples for _ in tasks]
        scores = [exact[at - 1] + rng.uniform(0, 0.05) if "F1" in task else exact[at] for at, task in enumerate(tasks)]
        rows.append(",".join([arm, str(num_examples), *(f"{score * scale:.{digits}f}" for score in scores)]))
    return "\n".join(rows)


KINDS: dict[IntegrityKind, Draw] = {
    IntegrityKind.SUMMARY_DIFFERS: draw_summaries,
    IntegrityKind.DIFFERENCE_DIFFERS: draw_differences,
    IntegrityKind.MIXED_UNITS: draw_spreads,
    IntegrityKind.IMPOSSIBLE_VALUES: draw_grids,
    IntegrityKind.REPEATED_VALUES: draw_tasks,
}


def count_findings(kind: IntegrityKind, num_tables: int, folder: Path) -> int:
    """Count the clean tables with a finding of a kind."""
    rng, path, num_found = np.random.default_rng(0), folder / "table.csv", 0
    for _ in range(num_tables):
        path.write_text(KINDS[kind](rng), encoding="utf-8")
        findings = judge(read_table(str(path), hints=TableHints(num_seeds=5))).findings
        num_found += any(finding.kind == kind for finding in findings)
    return num_found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        for kind in KINDS:
            print(f"{kind.value}: {count_findings(kind, int(sys.argv[1]), Path(name))} of {sys.argv[1]}", flush=True)
