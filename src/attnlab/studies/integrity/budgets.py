"""Arms with different budgets: last steps, tokens, epochs, batch sizes, or numbers of evaluation examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .finding import IntegrityFinding, IntegrityKind, list_first
from .table import ResultTable


def check_budgets(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Compare the budgets of the arms of each group."""
    if len(table.arms) < 2:
        return
    for group in table.groups:
        yield from _different(group, "step", _last_steps(table, group))
        names = {name for budget in table.budgets.values() for name in budget}
        for name in sorted(names):
            yield from _different(group, name, _given(table, group, name))


def _different(group: str, what: str, by_arm: Mapping[str, set[str]]) -> Iterator[IntegrityFinding]:
    given = {arm: values for arm, values in by_arm.items() if values}
    if len({frozenset(values) for values in given.values()}) <= 1:
        return
    shown = [f"'{arm}' {list_first(sorted(values, key=_number), 3)}" for arm, values in given.items()]
    where = f" of {group}" if group else ""
    last = "last step" if what == "step" else what
    yield IntegrityFinding(
        IntegrityKind.DIFFERENT_BUDGETS,
        f"the arms{where} differ in {last}: {', '.join(shown)}; their scores may differ because of that",
        data={"group": group, "what": what, "arms": {arm: sorted(values) for arm, values in given.items()}},
    )


def _last_steps(table: ResultTable, group: str) -> dict[str, set[str]]:
    """Return the last steps of the runs of each arm; a run that stops early has a smaller budget."""
    last: dict[tuple[str, str], float] = {}
    for cell in table.values:
        if cell.group == group and cell.step is not None:
            key = cell.arm, cell.seed
            last[key] = max(last.get(key, cell.step), cell.step)
    found: dict[str, set[str]] = {}
    for (arm, _), step in last.items():
        found.setdefault(arm, set()).add(f"{step:g}")
    return found


def _given(table: ResultTable, group: str, name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for (arm, of_group, _), budget in table.budgets.items():
        if of_group == group and name in budget:
            found.setdefault(arm, set()).add(budget[name])
    return found


def _number(text: str) -> tuple[float, str]:
    try:
        return float(text), text
    except ValueError:
        return float("inf"), text
