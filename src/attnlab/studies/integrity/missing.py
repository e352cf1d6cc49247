"""Runs without a score: empty cells, NaN, `diverged` and the like, which count as failed runs."""

from __future__ import annotations

from collections.abc import Iterator

from .finding import IntegrityFinding, IntegrityKind, list_first
from .selection import find_pairs
from .table import Cell, ResultTable


def check_missing(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Note which runs count as failed, since an empty cell may also be a run that was never made."""
    missing: dict[tuple[str, str, str, str], Cell | None] = {}
    for pair in find_pairs(table):
        cells = {(cell.arm, cell.seed): cell for cell in pair.cells}
        for arm, scores in ((table.baseline, pair.baseline), (pair.arm, pair.variant)):
            for seed, score in scores.items():
                if score is None:
                    missing[arm, pair.group, pair.metric, seed] = cells.get((arm, seed))
    if missing:
        shown = [
            f"{' '.join(filter(None, (arm, group, metric)))} seed {seed} ({_show(cell)})"
            for (arm, group, metric, seed), cell in missing.items()
        ]
        yield IntegrityFinding(
            IntegrityKind.MISSING_SCORES,
            f"{list_first(shown)}; each counts as a run that failed. If a run was never started, remove it from the "
            "table",
            is_fault=False,
            places=tuple(cell.place for cell in missing.values() if cell is not None),
            data={"num_missing": len(missing)},
        )


def _show(cell: Cell | None) -> str:
    if cell is None:
        return "ends at an earlier step"
    return f"'{cell.text}', {cell.place}" if cell.text else f"empty, {cell.place}"
