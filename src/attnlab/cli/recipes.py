"""`attnlab recipes`: the studies that come with attnlab; `attnlab recipes copy NAME` gives one to edit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError, closest

BUDGETS = ("smoke", "laptop", "paper")


def recipes(
    action: Annotated[str, typer.Argument(metavar="[copy]", help="copy writes a recipe to a file of yours.")] = "",
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="The recipe to copy.")] = "",
    out: Annotated[str, typer.Option(metavar="FILE", help="Where the copy goes; NAME.toml if left out.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the list for programs to read.")] = False,
) -> int:
    """List the studies that come with attnlab, or copy one to edit."""
    if action == "copy":
        return copy(name, out)
    if action or name:
        raise RequestError(f"attnlab recipes takes nothing, or 'copy NAME'; it got '{action}'")
    # Imported here because the command line must answer --help without torch.
    from attnlab.studies.recipes import purpose
    from attnlab.studies.recipes import recipes as known

    found = {recipe: (purpose(file), sizes(file)) for recipe, file in known().items()}
    if as_json:
        print_json([{"name": recipe, "about": about, "runs": runs} for recipe, (about, runs) in found.items()])
        return 0
    print_table(
        ("recipe", *(f"{budget}: runs" for budget in BUDGETS), "what it asks"),
        [(recipe, *(f"{runs[budget]:,}" for budget in BUDGETS), about) for recipe, (about, runs) in found.items()],
    )
    print("attnlab run NAME --budget smoke --out DIR runs one; --dry-run says what it needs, and its time here.")
    print("attnlab recipes copy NAME writes it to a file of yours, to change.")
    return 0


def sizes(file: Path) -> dict[str, int]:
    """Return how many runs each budget of a recipe has."""
    from attnlab.studies.text import read_design

    found = {}
    for budget in BUDGETS:
        design = read_design(file, budget)
        seeds = sum(1 if stage.is_shared else len(design.seeds) for stage in design.stages)
        found[budget] = seeds * len(design.sizes) * len(design.arms)
    return found


def copy(name: str, out: str) -> int:
    """Write a recipe to a file; one that is there already is left as it is."""
    from attnlab.studies.recipes import recipes as known

    there = known()
    if name not in there:
        hint = closest(name, there) or "."
        raise RequestError(f"there is no recipe '{name}'{hint} There are: {', '.join(there)}")
    target = Path(out or f"{name}.toml")
    try:
        with target.open("x", encoding="utf-8") as opened:
            opened.write(there[name].read_text(encoding="utf-8"))
    except FileExistsError as error:
        raise RequestError(f"{target} is there already; give another place with --out FILE") from error
    except OSError as error:
        raise RequestError(f"cannot write {target}: {error.strerror}") from error
    print(f"{target} is yours to change; attnlab run {target} --budget smoke --out DIR runs it")
    return 0
