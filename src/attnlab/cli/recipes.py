"""`attnlab recipes`: the studies that come with attnlab; `attnlab recipes copy NAME` gives one to edit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.files import write_new
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError, closest

if TYPE_CHECKING:
    from attnlab.studies.cost.estimate import CostEstimate

BUDGETS = ("smoke", "laptop", "paper")
WORKERS = 2
"""Runs at a time that the times are for."""
NOTHING = "—"
UNITS = ((3 * 86400, 86400, "days"), (5400, 3600, "h"), (90, 60, "min"), (0, 1, "s"))
"""From how many seconds on a unit is taken, its own, and its name; the largest first."""


def recipes(
    action: Annotated[str, typer.Argument(metavar="[copy]", help="copy writes a recipe to a file of yours.")] = "",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="The recipe to copy.")] = "",
    out: Annotated[str, typer.Option(metavar="FILE", help="Where the copy goes; NAME.toml if left out.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the list for programs to read.")] = False,
) -> int:
    """List the studies that come with attnlab, or copy one to edit."""
    if action == "copy" and not name:
        raise RequestError("attnlab recipes copy NAME needs the name of a recipe; attnlab recipes lists them")
    if action == "copy":
        return _copy_recipe(name, out)
    if action or name:
        raise RequestError(f"attnlab recipes takes nothing, or 'copy NAME'; it got '{action}'")
    found = _estimate_recipes()
    if as_json:
        print_json([_make_record(recipe, about, by_budget) for recipe, (about, by_budget) in found.items()])
        return 0
    print_table(
        ("recipe", *BUDGETS, "what it asks"),
        [(recipe, *map(_format_budget, by_budget.values()), about) for recipe, (about, by_budget) in found.items()],
    )
    _print_notes(any(cost.seconds is None for _, by_budget in found.values() for cost in by_budget.values()))
    return 0


def _estimate_recipes() -> dict[str, tuple[str, dict[str, CostEstimate]]]:
    """Return what every recipe is for, and what each of its budgets costs, roughly."""
    # Imported here because the command line must answer --help without torch.
    from attnlab.studies.cost.estimate import estimate_cost
    from attnlab.studies.file.recipes import list_recipes, read_purpose
    from attnlab.studies.study import Study

    def predict(file: Path, budget: str) -> CostEstimate:
        return estimate_cost(Study.load(file, budget), workers=WORKERS, method="predicted")

    return {
        recipe: (read_purpose(file), {budget: predict(file, budget) for budget in BUDGETS})
        for recipe, file in list_recipes().items()
    }


def _make_record(recipe: str, about: str, by_budget: Mapping[str, CostEstimate]) -> dict[str, Any]:
    """Return a recipe as plain data; seconds are null where they depend on what is not here."""
    return {
        "name": recipe, "about": about,
        "runs": {budget: cost.num_runs for budget, cost in by_budget.items()},
        "seconds": {budget: cost.seconds for budget, cost in by_budget.items()},
        "unknown": {budget: list(cost.unknown) for budget, cost in by_budget.items()},
    }  # fmt: skip


def _format_budget(cost: CostEstimate) -> str:
    """Write what a budget costs: its runs, and its time."""
    return f"{cost.num_runs:,} runs, {NOTHING if cost.seconds is None else format_rough_time(cost.seconds)}"


def format_rough_time(seconds: float) -> str:
    """Write a span of time with two digits at most."""
    size, unit = next((size, unit) for least, size, unit in UNITS if seconds >= least)
    return f"{float(f'{seconds / size:.2g}'):,g} {unit}"


def _print_notes(has_unknown: bool) -> None:
    """Say what the times are worth, and how to go on."""
    print(
        "Times are predicted, not measured: operations counted from sizes and steps, at the speed of this machine if "
        f"it is idle, with --workers {WORKERS}."
    )
    if has_unknown:
        print(
            f"{NOTHING} depends on data or models that are not here (--json says which); "
            "attnlab run NAME --budget B --dry-run --data … times it for real."
        )
    print("attnlab run NAME --budget smoke --out DIR runs one; --dry-run says what it needs, and its time here.")
    print("attnlab recipes copy NAME writes it to a file of yours, to change.")


def _copy_recipe(name: str, out: str) -> int:
    """Write a recipe to a file; one that is there already is left as it is."""
    from attnlab.studies.file.recipes import list_recipes

    there = list_recipes()
    if name not in there:
        hint = closest(name, there) or "."
        raise RequestError(f"there is no recipe '{name}'{hint} There are: {', '.join(there)}")
    target = Path(out or f"{name}.toml")
    write_new(target, there[name].read_text(encoding="utf-8"))
    print(f"{target} is yours to change; attnlab run {target} --budget smoke --out DIR runs it")
    return 0
