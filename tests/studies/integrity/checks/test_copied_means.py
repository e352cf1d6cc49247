"""An arm with the means and SDs of another in all tasks is a fault; equal means alone are not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnlab.studies.integrity import IntegrityKind
from attnlab.studies.integrity.checks.copied_means import check_copied_means
from attnlab.studies.integrity.tables.table import Cell, ResultTable
from tests.studies.integrity.result_tables import judge_file, write_text

TABLE = """Accuracy, mean ± SD over 5 seeds

| Method | CIFAR-10 | CIFAR-100 | SVHN | STL-10 |
|---|---|---|---|---|
| ViT | 91.42 ± 0.21 | 71.93 ± 0.38 | 95.11 ± 0.12 | 83.27 ± 0.44 |
| A | 91.97 ± 0.18 | 72.64 ± 0.31 | 95.34 ± 0.15 | 84.02 ± 0.37 |
| B | 91.97 ± {} | 72.64 ± {} | 95.34 ± {} | 84.02 ± {} |
"""


@pytest.mark.parametrize(
    ("sds", "is_fault"), [(("0.18", "0.31", "0.15", "0.37"), True), (("0.21", "0.29", "0.11", "0.35"), False)]
)
def test_equal_means_and_sds_are_a_fault(tmp_path: Path, sds: tuple[str, ...], is_fault: bool) -> None:
    path = Path(write_text(tmp_path, TABLE.format(*sds))).rename(tmp_path / "t.md")
    found = [it for it in judge_file(str(path)).findings if it.kind == IntegrityKind.REPEATED_VALUES]
    assert [it.is_fault for it in found] == [is_fault]
    assert ("B has the means and the SDs of A in all 4 tasks" in found[0].sentence) == is_fault


def draw_means(rng: np.random.Generator) -> ResultTable:
    """Draw accuracies of arms without any difference: means and SDs over seeds, rounded to one or two decimals."""
    num_arms, num_tasks, num_seeds = (int(rng.integers(low, high + 1)) for low, high in ((2, 6), (2, 5), (3, 10)))
    decimals, knows_seeds, cells = rng.integers(1, 3, 2), rng.random() < 0.7, []
    for task in range(num_tasks):
        sd, num_examples = (float(np.exp(rng.uniform(*np.log(limits)))) for limits in ((0.1, 2), (100, 10_000)))
        center = rng.uniform(50, 95)
        for arm in range(num_arms):
            values = np.round((center + sd * rng.standard_normal(num_seeds)) * num_examples / 100) / num_examples * 100
            mean, spread = f"{values.mean():.{decimals[0]}f}", f"{values.std(ddof=1):.{decimals[1]}f}"
            place, known = f"{arm}, {task}", num_seeds if knows_seeds else None
            cell = Cell(f"arm {arm}", f"task {task}", "accuracy", "", None, float(mean), mean, place)
            cells.append(replace(cell, sd=float(spread), sd_text=spread, num_seeds=known))
    return ResultTable("simulated", (), tuple(cells), "arm 0")


def test_arms_without_any_difference_are_rarely_called_copies() -> None:
    rng = np.random.default_rng(0)
    findings = [list(check_copied_means(draw_means(rng))) for _ in range(3000)]
    assert not any(finding.is_fault for of_table in findings for finding in of_table)
    assert sum(map(bool, findings)) <= 0.01 * len(findings)


def test_a_task_that_only_one_arm_has_is_left_out(tmp_path: Path) -> None:
    table = TABLE.format("0.18", "0.31", "0.15", "0.37").replace("| A | 91.97 ± 0.18 |", "| A | – |")
    path = Path(write_text(tmp_path, table)).rename(tmp_path / "t.md")
    sentences = [it.sentence for it in judge_file(str(path)).findings if it.kind == IntegrityKind.REPEATED_VALUES]
    assert "B has the means and the SDs of A in all 3 tasks" in sentences[0]
