"""`attnlab compare`: what a study's folder says, without running anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.conclusion import print_answers, print_failed, print_findings
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError, closest

if TYPE_CHECKING:
    from attnlab.studies.answers.analysis import Answer
    from attnlab.studies.answers.exploration import Exploration
    from attnlab.studies.answers.study_folder import Record

EFFECTS = ("phase", "size", "arm", "figure", "interval", "p", "Hedges g", "P(variant > baseline)", "ρ")
EXPLORED = ("phase", "size", "arm", "figure", "seeds", "difference", "p", "adjusted p")
UNFINISHED = "no verdicts, and no comparison, while a run is left to wait for: that would be a look nobody declared"


@dataclass(frozen=True)
class Filter:
    """What of a study is shown; nothing said is all. It changes no verdict: families stay those of the study."""

    phases: Collection[str] = ()
    sizes: Collection[str] = ()
    arms: Collection[str] = ()

    def includes(self, phase: str, size: str, arm: str | None = None) -> bool:
        """Tell whether something is shown."""
        names = ((self.phases, phase), (self.sizes, size), (self.arms, arm))
        return all(not wanted or name is None or name in wanted for wanted, name in names)


@dataclass(frozen=True)
class SeedScores:
    """The figure that decides, of every run of one phase and size: by arm and seed, or what became of the run."""

    phase: str
    size: str
    figure: str
    values: dict[str, dict[int, float | str]]


def compare(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of a study, attnlab run --out DIR.")],
    phase: Annotated[list[str] | None, typer.Option(help="Show this phase alone; repeat it.")] = None,
    size: Annotated[list[str] | None, typer.Option(help="Show this size alone; repeat it.")] = None,
    arm: Annotated[list[str] | None, typer.Option(help="Show this arm, and the baseline; repeat it.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything for programs to read.")] = False,
) -> int:
    """Say what a study's folder says: verdicts, every seed, and its other figures as exploratory."""
    # Imported here because the command line must answer --help without torch.
    from attnlab.studies.answers.exploration import explore
    from attnlab.studies.answers.study_folder import open_record

    wanted = Filter(phase or (), size or (), arm or ())
    with open_record(folder) as record:
        _check_filter(wanted, record)
        answers = [one for one in record.answers if wanted.includes(one.phase, one.size, one.arm)]
        explored = [one for one in explore(record) if wanted.includes(one.phase, one.size, one.arm)]
        seeds = list(_list_seed_scores(record, wanted))
        if as_json:
            print_json({
                "study": record.design.name, "runs": len(record.runs), "ended": record.num_ended,
                "failed": record.failed,
                "is_whole": record.is_whole, "answers": [one.record() for one in answers],
                "seeds": [vars(one) for one in seeds], "exploratory": [one.record() for one in explored],
                "findings": [one.record() for one in record.findings] if record.is_whole else [],
            })  # fmt: skip
            return 0
        print_answers(answers)
        _print_effects(answers)
        _print_seeds(seeds)
        _print_explorations(explored)
        print_findings(record.findings if record.is_whole else ())
        print_failed(record.failed)
        print(f"{record.num_ended} of {len(record.runs)} runs have ended")
        if not record.is_whole:
            print(UNFINISHED)
    return 0


def _check_filter(wanted: Filter, record: Record) -> None:
    """Refuse a name that the study has not."""
    known = {
        "phase": (wanted.phases, [phase.name for phase in record.design.phases]),
        "size": (wanted.sizes, list(record.design.sizes)),
        "arm": (wanted.arms, list(record.design.arms)),
    }
    for option, (names, there) in known.items():
        for name in names:
            if name not in there:
                hint = closest(name, there) or "."
                raise RequestError(f"the study has no {option} '{name}'{hint} It has {', '.join(there)}")


def _list_seed_scores(record: Record, wanted: Filter) -> Iterator[SeedScores]:
    """Yield every seed's figure, of all phases that have one, also where nothing is compared."""
    for phase in record.design.phases:
        for size in record.design.sizes:
            table = record.table(phase.name, size)
            figure = table.figure
            if figure is None or not wanted.includes(phase.name, size):
                continue
            values: dict[str, dict[int, float | str]] = {}
            baseline = record.design.baseline
            for arm in (baseline, *(one for one in table.runs if one != baseline)):
                runs = table.runs[arm]
                if runs and (arm == baseline or wanted.includes(phase.name, size, arm)):
                    known = table.values(arm, figure).items()
                    values[arm] = {seed: _describe_fate(record, runs[seed].id) if v is None else v for seed, v in known}
            yield SeedScores(phase.name, size, figure, values)


def _describe_fate(record: Record, run: str) -> str:
    """Say what became of a run without a figure."""
    if run in record.given_up:
        return "failed"
    row: Any = record.results.get(run)
    if row is None:
        return "not ended"
    return "no figure" if row.status == "finished" else str(row.status)


def _print_effects(answers: Sequence[Answer]) -> None:
    """Print what stands beside the differences."""
    from attnlab.statistics.formatting import percent, show, signed

    rows = []
    for answer in answers:
        one = answer.comparison
        if one is not None:
            low, high = one.interval
            interval = f"[{signed(low)}, {signed(high)}] ({percent(1 - one.level)})"
            effects = (one.effects.hedges_g, one.effects.probability, one.effects.rho)
            own = (answer.phase, answer.size, answer.arm, answer.figure)
            rows.append((*own, interval, show(one.p), *map(show, effects)))
    if rows:
        print()
        print_table(EFFECTS, rows)


def _print_seeds(found: Sequence[SeedScores]) -> None:
    """Print every seed's figure, a column an arm."""
    for one in found:
        print(f"\n{one.phase}, {one.size}: {one.figure} of every seed, the baseline first")
        numbers = dict.fromkeys(seed for values in one.values.values() for seed in values)
        cells = [[_format_score(values.get(seed, "–")) for values in one.values.values()] for seed in numbers]
        rows = [(str(seed), *row) for seed, row in zip(numbers, cells, strict=True)]
        print_table(("seed", *one.values), rows)


def _format_score(value: float | str) -> str:
    """Write a figure, or what became of a run."""
    return value if isinstance(value, str) else f"{value:.6g}"


def _print_explorations(found: Sequence[Exploration]) -> None:
    """Print the figures that decide nothing, and say so."""
    from attnlab.reports.differences import format_difference
    from attnlab.statistics.formatting import show

    if not found:
        return
    print("\nexploratory: other figures, adjusted as one family a phase and size (Benjamini–Hochberg); no verdicts")
    rows = []
    for one in found:
        span = (
            f"not compared: {one.obstacle}"
            if one.obstacle
            else format_difference(one.difference, one.interval, one.scale)
        )
        own = (one.phase, one.size, one.arm, one.figure, str(one.num_seeds))
        rows.append((*own, span, show(one.p), show(one.adjusted)))
    print_table(EXPLORED, rows)
