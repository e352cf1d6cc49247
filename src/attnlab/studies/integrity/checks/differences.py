"""Differences that a table states, checked against the figures that they are differences of."""

from collections.abc import Iterator

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.table import ResultTable, group_cells


def check_differences(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Find differences that rounding does not explain."""
    for name, differences in group_cells(table.differences, lambda difference: difference.name).items():
        wrong = [difference for difference in differences if difference.excess > 1]
        if not wrong:
            continue
        shown = [f"{it.title}: {it.text} ({it.place}), but the figures give {it.expected:+.4g}" for it in wrong]
        agree = len(differences) - len(wrong)
        yield IntegrityFinding(
            IntegrityKind.DIFFERENCE_DIFFERS,
            f"{name!r} is {differences[0].source}, with which {agree} of {len(differences)} agree; "
            f"{'this one does' if len(wrong) == 1 else 'these do'} not, by more than rounding: {list_first(shown)}",
            places=tuple(it.place for it in wrong),
            data={"num_checked": len(differences), "num_wrong": len(wrong)},
        )
