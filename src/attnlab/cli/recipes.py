"""`attnlab recipes`: the studies that come with attnlab; `attnlab recipes copy NAME` writes one to edit."""

import tomllib
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.new import write_new
from attnlab.cli.options import AsJson
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError, closest
from attnlab.inputs import expand_path

if TYPE_CHECKING:
    from attnlab.studies.cost.estimate import CostEstimate

BUDGETS = ("smoke", "minutes", "laptop", "paper")
"""The budgets that recipes have, the smallest first; not every recipe has `minutes`."""
WORKERS = 2
"""The number of parallel runs that times assume."""
EXAMPLES = {
    '[search] over = { "optimizer.lr" = [1e-3, 3e-3, 1e-2] }': "every arm at its own rate, as in learning-rates",
    'match = "operations"': "arms that cost the same, by their steps; also seconds, parameters, state",
    '[trend] over = "parameters"': "does the difference shrink or grow over three sizes or more?",
    "horizons = [1000, 2000, 4000]": "does it close or open with longer training?",
}
"""Settings of a study file that make a comparison fair, or ask about several at once."""
UNITS = ((3 * 86400, 86400, "days"), (5400, 3600, "h"), (90, 60, "min"), (0, 1, "s"))
"""The smallest number of seconds written in a unit, the unit's seconds, and its name; the largest first."""


def recipes(
    action: Annotated[str, typer.Argument(metavar="[copy]", help="copy writes a recipe to a file.")] = "",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="The recipe to copy.")] = "",
    out: Annotated[str, typer.Option(metavar="FILE", help="The path of the copy; default: NAME.toml.")] = "",
    times: Annotated[bool, typer.Option("--times", help="Predict the time of each here, in ten seconds.")] = False,
    as_json: AsJson = False,
) -> int:
    """List the studies that come with attnlab, or copy one to edit."""
    if action == "copy" and not name:
        raise RequestError("attnlab recipes copy NAME needs the name of a recipe; attnlab recipes lists them")
    if action == "copy":
        return _copy_recipe(name, out)
    if action or name:
        raise RequestError(f"attnlab recipes takes nothing, or 'copy NAME'; it got '{action}'")
    from attnlab.studies.file.recipes import find_answering_budget, list_recipes, read_budgets, read_purpose

    records, rows, has_unknown = [], [], False
    for recipe, file in list_recipes().items():
        num_runs = {budget: _count_runs(file, budget) for budget in read_budgets(file)}
        record: dict[str, Any] = {
            "name": recipe, "about": read_purpose(file), "answered_by": find_answering_budget(file), "runs": num_runs,
        }  # fmt: skip
        cells = {budget: f"{num:,} runs" for budget, num in num_runs.items()}
        if times:
            costs = {budget: _predict_cost(file, budget) for budget in num_runs}
            record["seconds"] = {budget: cost.seconds for budget, cost in costs.items()}
            record["unknown"] = {budget: list(cost.unknown) for budget, cost in costs.items()}
            cells = {budget: f"{cell}, {_format_cost(costs[budget])}" for budget, cell in cells.items()}
            has_unknown |= any(cost.seconds is None for cost in costs.values())
        records.append(record)
        rows.append((recipe, record["answered_by"], *(cells.get(name, "") for name in BUDGETS), record["about"]))
    if as_json:
        print_json(records)
        return 0
    print_table(("recipe", "answered by", *BUDGETS, "what it asks"), rows)
    _print_notes(times, has_unknown)
    return 0


def _count_runs(file: Path, budget: str) -> int:
    from attnlab.studies.file.design import IS_RECORDED, Design
    from attnlab.studies.file.horizons import expand_horizons
    from attnlab.studies.file.overrides import select_grid, set_value
    from attnlab.studies.plan.search import count_trials

    content = tomllib.loads(file.read_text(encoding="utf-8"))
    for path, value in content.pop("budgets")[budget].items():
        set_value(content, path, value, budget)
    # Recipes are valid, and without parsing their mechanisms torch is not imported.
    design = expand_horizons(Design.model_validate(content, context={IS_RECORDED: True}))
    num_runs = 0
    for phase, arm in product(design.phases, design.arms.values()):
        num_seeds = 1 if phase.is_shared else len(design.seeds)
        num_runs += num_seeds
        if design.search is not None and (grid := select_grid(design, phase, arm)):
            num_runs += (1 if design.search.repeat == "once" else num_seeds) * count_trials(design.search, grid)
    return num_runs * len(design.sizes)


def _predict_cost(file: Path, budget: str) -> "CostEstimate":
    from attnlab.studies.cost.estimate import estimate_cost
    from attnlab.studies.study import Study

    return estimate_cost(Study.load(file, budget), workers=WORKERS, method="predicted")


def _format_cost(cost: "CostEstimate") -> str:
    return "—" if cost.seconds is None else format_rough_time(cost.seconds)


def format_rough_time(seconds: float) -> str:
    """Write a time span with at most two digits."""
    size, unit = next((size, unit) for least, size, unit in UNITS if seconds >= least)
    return f"{float(f'{seconds / size:.2g}'):,g} {unit}"


def _print_notes(has_times: bool, has_unknown: bool) -> None:
    if has_times:
        print(
            "Times are predicted, not measured: operations counted from sizes and steps, at the speed of this machine "
            f"if it is idle, with --workers {WORKERS}."
        )
    else:
        print("attnlab recipes --times predicts how long each takes on this machine.")
    if has_unknown:
        print(
            "— depends on data or models that are not here (--json lists them); "
            "attnlab run NAME --budget B --dry-run --data … measures it."
        )
    print(
        "Answered by: the smallest budget that answers the question; smaller ones only run every part, as a smoke test."
    )
    print("attnlab run NAME --budget BUDGET --out DIR runs one; --dry-run shows what it needs, and its time here.")
    print("attnlab recipes copy NAME writes it to a file that you can edit.")
    print("In a study file (docs/studies.md):")
    for example, meaning in EXAMPLES.items():
        print(f"  {example:<57} {meaning}")


def _copy_recipe(name: str, out: str) -> int:
    from attnlab.studies.file.recipes import find_answering_budget, list_recipes

    files = list_recipes()
    if name not in files:
        hint = closest(name, files) or "."
        raise RequestError(f"there is no recipe '{name}'{hint} There are: {', '.join(files)}")
    target = expand_path(out or f"{name}.toml")
    write_new(target, files[name].read_text(encoding="utf-8"))
    budget = find_answering_budget(files[name])
    print(f"{target} is yours to edit; attnlab run {target} --budget {budget} --out DIR runs it")
    return 0
