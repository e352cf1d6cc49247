"""`attnlab plan`: the number of seeds that a study needs, and the differences that its seeds detect."""

import math
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.cli.assignments import read_settings
from attnlab.cli.claim import MAX_NUMBER, MIN_NUMBER, plan_claim
from attnlab.cli.options import AsJson, Plugins, Settings
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_below, print_json, print_table
from attnlab.errors import RequestError
from attnlab.inputs import expand_path

if TYPE_CHECKING:
    from attnlab.studies.answers.power_analysis import Aim, Prospect
    from attnlab.studies.file.design import Design

POWERS = (0.8, 0.9)
COUNTED = (
    "power is how often a verdict finds the difference by its own rule, with normal scores: t, widened for few pairs "
    "and skewness, and the exact test"
)
NUMBERS = (5, 7, 10, 20)
"""The numbers of seeds in the table that is shown if the spread is unknown."""
NUM_PILOT = 3
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".md", ".tex", ".html", ".xlsx", ".parquet", ".txt")
"""The ends of names that tables have, and study files have not."""


def plan(
    path: Annotated[str, typer.Argument(metavar="[RECIPE|FILE|DIR]", help="A study, or the folder of one.")] = "",
    pilot: Annotated[
        str | None, typer.Option(metavar="DIR", help="The folder of a pilot of the study file, such as 3 seeds of it.")
    ] = None,
    spread: Annotated[
        float | None,
        typer.Option(metavar="SD", help="Without a pilot: the SD of the paired difference of one seed."),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(metavar="D", help="Without a study: a difference of arms, with --sd or --spread."),
    ] = None,
    sd: Annotated[
        str | None,
        typer.Option(metavar="SD[,SD]", help="Without a study: the SD of an arm's scores over seeds, or of both arms."),
    ] = None,
    power: Annotated[
        list[float] | None, typer.Option(help="Probability to detect the effect; default: 0.8 and 0.9; repeatable.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="False-positive rate of the whole study.")] = 0.05,
    budget: Annotated[str | None, typer.Option(help="A section of the study file.")] = None,
    assign: Settings = None,
    plugin: Plugins = None,
    as_json: AsJson = False,
) -> int:
    """Print how many seeds detect the smallest difference of interest, from the spread of a pilot.

    Without a study: attnlab plan --difference 0.4 --sd 0.5
    """
    _check_numbers(power or POWERS, alpha, spread)
    load_plugins(plugin)
    if not path or difference is not None or sd is not None:
        of_study = path or any(value is not None for value in (pilot, budget, assign))
        if sd is not None and spread is not None:
            raise RequestError("--difference takes --sd, the SDs of arms, or --spread, that of a paired difference")
        if of_study or difference is None or (sd is None and spread is None):
            raise RequestError(
                "plan takes a study (a recipe, a file or a folder), or --difference D with --sd SD or --spread SD "
                "without one. For example: attnlab plan study.toml --pilot pilot, or attnlab plan --difference 0.4 "
                "--sd 0.5"
            )
        plan_claim(difference, sd, spread, power or POWERS, alpha, as_json)
        return 0
    if expand_path(path).suffix.lower() in TABLES:
        raise RequestError(
            f"{path} is a table, not a study. attnlab judge {path} says how many more seeds would settle its "
            "comparisons; attnlab plan --difference D --sd SD,SD plans from the difference and the SDs of two arms"
        )
    is_folder = expand_path(path).is_dir()
    given = {"--pilot": pilot, "--spread": spread, "--budget": budget, "--set": assign}
    if is_folder and (wrong := [option for option, value in given.items() if value is not None]):
        raise RequestError(f"{path} is the folder of a study, whose runs are the pilot; omit {wrong[0]}")
    if pilot is not None and spread is not None:
        raise RequestError("--pilot and --spread both give the spread of seeds; give one of them")
    from attnlab.studies.answers.power_analysis import Aim, estimate_seed_time, plan_seeds
    from attnlab.studies.answers.study_folder import open_record
    from attnlab.studies.file.reading import read_design
    from attnlab.studies.file.recipes import find_study

    aim = Aim(tuple(power or POWERS), alpha)
    design = None if is_folder else read_design(find_study(path), budget, read_settings(assign))
    seed_time = None
    if is_folder or pilot is not None:
        with open_record(path if is_folder else str(pilot)) as record:
            design = design or record.design
            _check_compares(design, path)
            prospects = plan_seeds(design, record, aim)
            seed_time = estimate_seed_time(record)
    else:
        assert design is not None
        _check_compares(design, path)
        _check_limits(design, plugin or [])
        if spread is None:
            _print_without_spread(design, path, aim, plugin or [], as_json)
            return 0
        prospects = plan_seeds(design, spread, aim)
    if as_json:
        times = None if seed_time is None else {"runs": seed_time[0], "seconds": seed_time[1]}
        notes = list(_list_notes(prospects, design, aim))
        print_json({"prospects": [prospect.record() for prospect in prospects], "a_seed": times, "notes": notes})
    else:
        _print_prospects(prospects, design, aim, seed_time)
    return 0


def _check_numbers(powers: Sequence[float], alpha: float, spread: float | None) -> None:
    for power in powers:
        if not 0 < power < 1:
            raise RequestError(f"--power takes a number between 0 and 1, such as 0.8; it has {power:g}")
    if not 0 < alpha < 0.5:
        raise RequestError(f"--alpha takes a number between 0 and 0.5, such as 0.05; it has {alpha:g}")
    if spread is not None and not MIN_NUMBER <= spread <= MAX_NUMBER:
        bounds = f"from {MIN_NUMBER:g} to {MAX_NUMBER:g}"
        raise RequestError(f"--spread takes a number {bounds}, in units of the primary metric; it has {spread:g}")


def _check_compares(design: "Design", path: str) -> None:
    if all(phase.smallest is None for phase in design.phases):
        raise RequestError(
            f"no phase of {path} has a smallest difference of interest; set it, as in phases.NAME.smallest = 0.01"
        )
    if len(design.arms) < 2:
        raise RequestError(f"{path} has one arm, and nothing to compare it with; add another")


def _check_limits(design: "Design", plugins: Sequence[str]) -> None:
    """Refuse what `attnlab run` would refuse; data that must be downloaded or given first is left to it."""
    from attnlab.studies.plan.planning import list_data

    sources = [design.data[name] for name in list_data(design) if name in design.data]
    named = [name for source in sources for name in (source.train, source.dev, source.tune) if name]
    is_here = all(name.startswith("embedded:") or expand_path(name).exists() for name in named)
    has_limits = any(source.is_packed for source in sources) or any(phase.sample_every for phase in design.phases)
    if is_here and has_limits and len(sources) == len(list_data(design)):
        from attnlab.studies.study import Study  # imports transformers, which takes seconds

        Study(design, plugins=plugins).check_limits()


def _print_prospects(
    prospects: Sequence["Prospect"], design: "Design", aim: "Aim", seed_time: tuple[int, float] | None
) -> None:
    from attnlab.statistics.formatting import show, show_count

    needed = [f"seeds for {power:.0%}" for power in aim.powers]
    detected = [f"{len(design.seeds)} detect ({power:.0%})" for power in aim.powers]
    columns = ("phase", "size", "arm", "figure", "smallest", "pilot", "SD", "SD upper bound", *needed, *detected)
    rows = []
    for prospect in prospects:
        rows.append((
            prospect.phase, prospect.size, prospect.arm, prospect.figure or "–", f"{prospect.smallest:g}",
            str(prospect.num_pilot or "–"), show(prospect.sd), show(prospect.sd_bound),
            *(show_count(prospect.seeds.get(power, math.nan)) for power in aim.powers),
            *(show(prospect.detectable.get(power, math.nan)) for power in aim.powers),
        ))  # fmt: skip
    print_table(columns, rows)
    for prospect in prospects:
        if prospect.obstacle:
            print(f"{prospect.phase}, {prospect.size}, {prospect.arm}: {prospect.obstacle}")
    for line in _list_needed_seeds(prospects, design, aim, seed_time):
        print(line)
    for note in _list_notes(prospects, design, aim):
        print_below(note)


def _list_needed_seeds(
    prospects: Sequence["Prospect"], design: "Design", aim: "Aim", seed_time: tuple[int, float] | None
) -> Iterator[str]:
    from attnlab.training.loop.progress import format_duration

    for power in aim.powers:
        needs = [prospect.seeds[power] for prospect in prospects if power in prospect.seeds]
        if not needs:
            continue
        if math.isinf(max(needs)):
            yield f"{power:.0%}: for some comparisons no number of seeds is enough, because the examples are too few"
            continue
        needed = int(max(needs))
        more = needed - len(design.seeds)
        if more <= 0:
            yield f"{power:.0%}: the study's {len(design.seeds)} seeds are enough for every comparison above"
            continue
        work = ""
        if seed_time is not None:
            num, seconds = seed_time
            work = (
                f": {more * num} runs, about {format_duration(more * seconds)} one after the other at the pilot's speed"
            )
        yield f"{power:.0%}: {needed} seeds, {more} more than the study has{work}"


def _list_notes(prospects: Sequence["Prospect"], design: "Design", aim: "Aim") -> Iterator[str]:
    from attnlab.studies.answers.analysis import count_comparisons
    from attnlab.studies.answers.power_analysis import find_level

    if any(prospect.num_pilot for prospect in prospects):
        yield (
            "SD is that of one seed's paired difference; seeds are planned with its 80 % upper bound, since a pilot "
            "often underestimates it"
        )
    elif prospects and not prospects[0].obstacle:
        yield "the SD of the paired difference is used as given"
    yield COUNTED
    if (num := count_comparisons(design)) > 1:
        yield (
            f"the study's {num} comparisons share one false-positive rate, {aim.alpha:g}, so each is planned at "
            f"{aim.alpha / num:.3g}"
        )
    if isinstance(design.looks, list):
        limit = find_level(design, aim.alpha)
        yield f"planned at the limit of the last declared look, {limit:.3g} at {design.looks[-1]} seeds"
        if any(need > design.looks[-1] for prospect in prospects for need in prospect.seeds.values()):
            yield f"more than {design.looks[-1]} seeds are past the declared looks, and need another study"
    elif design.looks == "open":
        yield "looks are open-ended and need more seeds than this, which does not account for them"


def _print_without_spread(design: "Design", path: str, aim: "Aim", plugins: Sequence[str], as_json: bool) -> None:
    from attnlab.statistics.estimate import Noise
    from attnlab.statistics.planning import detectable_effect
    from attnlab.studies.answers.power_analysis import find_level

    level = find_level(design, aim.alpha)
    unit = Noise(1.0, math.inf)
    effects = {n: {power: detectable_effect(unit, n, power, level) for power in aim.powers} for n in NUMBERS}
    seeds = (design.seeds + [seed for seed in range(1, 10) if seed not in design.seeds])[:NUM_PILOT]
    own = [word for file in plugins for word in ("--plugin", file)]
    commands = [
        shlex.join(["attnlab", "run", path, "--out", "pilot", "--set", f"seeds={seeds}", *own]),
        shlex.join(["attnlab", "plan", path, "--pilot", "pilot", *own]),
    ]
    if as_json:
        shown = {str(n): {f"{power:g}": effect for power, effect in row.items()} for n, row in effects.items()}
        print_json({"prospects": [], "detectable_in_sd": shown, "level": level, "pilot": commands})
        return
    print("There is nothing to estimate the spread over seeds from. Run a pilot of 3 seeds:")
    for command in commands:
        print(f"  {command}")
    print("Or give it: --spread SD. In units of the SD of the paired difference, seeds detect:")
    rows = [(str(n), *(f"{row[power]:.2f}" for power in aim.powers)) for n, row in effects.items()]
    print_table(("seeds", *(f"at {power:.0%} power" for power in aim.powers)), rows)
    for note in _list_notes([], design, aim):
        print_below(note)
