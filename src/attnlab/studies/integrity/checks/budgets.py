"""Arms with different budgets: last steps, tokens, epochs, batch sizes, or numbers of evaluation examples."""

from collections.abc import Iterator, Mapping

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.figure import parse_number
from ..tables.table import ResultTable, Run


def check_budgets(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Compare the budgets of the arms of each group."""
    if len(table.arms) < 2:
        return
    # A run that stops early has a smaller budget.
    last: dict[Run, float] = {}
    for cell in table.values:
        if cell.step is not None:
            last[cell.run] = max(last.get(cell.run, cell.step), cell.step)
    budgets: dict[str, Mapping[Run, str]] = {"step": {run: f"{step:g}" for run, step in last.items()}}
    for name in sorted({name for budget in table.budgets.values() for name in budget}):
        budgets[name] = {run: budget[name] for run, budget in table.budgets.items() if name in budget}
    for group in table.groups:
        for name, budget in budgets.items():
            yield from _compare_arms(group, name, budget)


def _compare_arms(group: str, name: str, budget: Mapping[Run, str]) -> Iterator[IntegrityFinding]:
    by_arm: dict[str, set[str]] = {}
    for (arm, run_group, _), amount in budget.items():
        if run_group == group:
            by_arm.setdefault(arm, set()).add(amount)
    if len({frozenset(amounts) for amounts in by_arm.values()}) <= 1:
        return
    shown = [f"'{arm}' {list_first(sorted(amounts, key=_order), 3)}" for arm, amounts in by_arm.items()]
    yield IntegrityFinding(
        IntegrityKind.DIFFERENT_BUDGETS,
        f"the arms{f' of {group}' if group else ''} differ in {'last step' if name == 'step' else name}: "
        f"{', '.join(shown)}; their scores may differ because of that",
        data={"group": group, "what": name, "arms": {arm: sorted(amounts) for arm, amounts in by_arm.items()}},
    )


def _order(amount: str) -> tuple[float, str]:
    number = parse_number(amount)
    return float("inf") if number is None else number, amount
