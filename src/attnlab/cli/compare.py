"""`attnlab compare`: the verdicts and values of a study's folder, or results from several places, compared."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.conclusion import print_answers, print_failed, print_findings, print_targets
from attnlab.cli.joint import print_joint_answers
from attnlab.cli.options import AsJson
from attnlab.cli.tables import print_json, print_table
from attnlab.errors import RequestError, closest
from attnlab.inputs import expand_path

if TYPE_CHECKING:
    from attnlab.studies.answers.analysis import Answer
    from attnlab.studies.answers.exploration import Exploration
    from attnlab.studies.answers.study_folder import Record

EFFECTS = ("phase", "size", "arm", "figure", "interval", "p", "Hedges g", "P(variant > baseline)", "ρ")
EXPLORED = ("phase", "size", "arm", "figure", "seeds", "difference", "p", "adjusted p")
UNFINISHED = "no verdicts, and no comparison, until all runs have ended: that would be an undeclared look"
Wanted = Mapping[str, Collection[str]]
"""The names to show, by phase, size and arm; empty shows all. Families and verdicts stay those of the study."""


@dataclass(frozen=True)
class SeedScores:
    """The primary metric of every run of one phase and size, by arm and seed, or the status of the run."""

    phase: str
    size: str
    figure: str
    values: dict[str, dict[int, float | str]]


def compare(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR|A B…",
            help="One study's folder; or two and more folders of studies or runs, files of results, or lists such as "
            "name=0.81,0.82. The first is the baseline.",
        ),
    ],
    phase: Annotated[list[str] | None, typer.Option(help="Show only this phase; repeatable.")] = None,
    size: Annotated[list[str] | None, typer.Option(help="Show only this size; repeatable.")] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(help="Show only this arm and the baseline; of several results, the arm of all, or one for each."),
    ] = None,
    metric: Annotated[str | None, typer.Option(metavar="NAME", help="Of several results: the metric.")] = None,
    smallest: Annotated[
        str | None, typer.Option(metavar="X", help="Of several results: the smallest difference of interest.")
    ] = None,
    units: Annotated[
        str | None, typer.Option(metavar="UNIT", help="Of several results: percent, fraction, convert (× 100).")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", help="Of several results: over how many seeds each mean ± SD is.")
    ] = None,
    spread: Annotated[
        str | None,
        typer.Option(
            metavar="sd|se|ci", help="Of several results: what ± is, SD (default), standard error, 95 % interval."
        ),
    ] = None,
    examples: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of several results: the size of the evaluation set, for accuracies."),
    ] = None,
    paired: Annotated[bool, typer.Option("--paired", help="Of several results: the same seed is a pair.")] = False,
    as_json: AsJson = False,
) -> int:
    """Print the verdicts of a study and its other figures, or compare results from several places.

    Status 1 if there is a fault.
    """
    several = {
        "--metric": metric, "--smallest": smallest, "--units": units, "--seeds": seeds, "--spread": spread,
        "--examples": examples, "--paired": paired or None,
    }  # fmt: skip
    single = {"--phase": phase, "--size": size}
    unwanted = next(
        (name for name, value in (single if len(results) > 1 else several).items() if value not in (None, [])), None
    )
    if examples is not None and examples < 1:
        raise RequestError(f"--examples must be 1 or more, not {examples}")
    if len(results) == 1 and _is_list(results[0]):
        raise RequestError(f"'{results[0]}' is one list of numbers; give a second list, such as ours=0.83,0.84,0.82")
    if unwanted is not None:
        raise RequestError(
            f"{unwanted} is for {'one study' if len(results) > 1 else 'two or more results'}; omit it here"
        )
    if len(results) > 1:
        from attnlab.cli.cross_comparison import compare_results
        from attnlab.studies.integrity.options import JudgeOptions, read_hints, read_numbers, read_texts

        options = JudgeOptions(
            examples,
            smallest=read_numbers("--smallest", smallest),
            units=read_texts("--units", units),
            is_paired=paired,
        )
        return compare_results(results, arm or [], read_hints(metric, seeds, spread), options, as_json)
    if expand_path(results[0]).is_file() or _holds_lm_eval(results[0]):
        raise RequestError(f"compare takes two or more results; attnlab judge {results[0]} examines one table")
    return _compare_study(results[0], {"phase": phase or [], "size": size or [], "arm": arm or []}, as_json)


def _holds_lm_eval(folder: str) -> bool:
    """Tell whether a folder is none of a study, and has results of lm-eval."""
    from attnlab.studies.answers.study_folder import LEDGER
    from attnlab.studies.integrity.tables.formats.files import find_result_files

    path = expand_path(folder)
    return path.is_dir() and not (path / LEDGER).exists() and bool(find_result_files(path))


def _is_list(text: str) -> bool:
    from attnlab.studies.answers.result_source import read_list

    return not expand_path(text).exists() and read_list(text) is not None


def _compare_study(folder: str, wanted: Wanted, as_json: bool) -> int:
    """Print the verdicts of one study, the figure of every seed, and other figures as exploratory."""
    from attnlab.studies.answers.exploration import explore
    from attnlab.studies.answers.study_folder import open_record
    from attnlab.studies.file.smoke_test import describe_smoke_test

    with open_record(folder) as record:
        smoke_test = describe_smoke_test(record.design)
        _check_filter(wanted, record)
        answers = [answer for answer in record.answers if _is_shown(answer, wanted)]
        joint = [answer for answer in record.joint_answers if answer.arm in (wanted["arm"] or [answer.arm])]
        explored = [item for item in explore(record) if _is_shown(item, wanted)]
        targets = [target for target in record.targets if _is_shown(target, wanted)]
        seeds = list(_list_seed_scores(record, wanted))
        findings = record.findings if record.is_whole else ()
        status = int(any(finding.is_fault for finding in findings))
        if as_json:
            print_json({
                "study": record.design.name, "runs": len(record.runs), "ended": record.num_ended,
                "failed": record.failed, "is_whole": record.is_whole, "seeds": [vars(scores) for scores in seeds],
                "answers": [answer.record() for answer in answers],
                "joint_answers": [answer.record() for answer in joint],
                "targets": [target.record() for target in targets],
                "exploratory": [item.record() for item in explored],
                "findings": [finding.record() for finding in findings], "smoke_test": smoke_test,
            })  # fmt: skip
            return status
        print_answers(answers)
        print_joint_answers(joint)
        print_targets(targets)
        _print_effects(answers)
        _print_seeds(seeds)
        _print_explorations(explored)
        print_findings(findings)
        print_failed(record.failed)
        print(f"{record.num_ended} of {len(record.runs)} runs have ended")
        if not record.is_whole:
            print(UNFINISHED)
        if smoke_test:
            print(smoke_test)
    return status


def _is_shown(item: Any, wanted: Wanted) -> bool:
    return all(not names or getattr(item, option) in names for option, names in wanted.items())


def _check_filter(wanted: Wanted, record: "Record") -> None:
    phases = [phase.name for phase in record.design.phases]
    options = {"phase": phases, "size": list(record.design.sizes), "arm": list(record.design.arms)}
    for option, known in options.items():
        for name in wanted[option]:
            if name not in known:
                hint = closest(name, known) or "."
                raise RequestError(f"the study has no {option} '{name}'{hint} It has {', '.join(known)}")


def _list_seed_scores(record: "Record", wanted: Wanted) -> Iterator[SeedScores]:
    for phase in record.design.phases:
        for size in record.design.sizes:
            table = record.table(phase.name, size)
            metric = table.metric
            if (
                metric is None
                or phase.name not in (wanted["phase"] or [phase.name])
                or size not in (wanted["size"] or [size])
            ):
                continue
            values: dict[str, dict[int, float | str]] = {}
            baseline = record.design.baseline
            for arm in sorted(table.runs, key=lambda name: name != baseline):
                runs = table.runs[arm]
                if runs and arm in (baseline, *(wanted["arm"] or [arm])):
                    values[arm] = {
                        seed: _describe_status(record, runs[seed].id) if value is None else value
                        for seed, value in table.values(arm, metric).items()
                    }
            yield SeedScores(phase.name, size, metric, values)


def _describe_status(record: "Record", run: str) -> str:
    if run in record.given_up:
        return "failed"
    row: Any = record.results.get(run)
    if row is None:
        return "not ended"
    return "no figure" if row.status == "finished" else str(row.status)


def _print_effects(answers: Sequence["Answer"]) -> None:
    from attnlab.statistics.formatting import percent, show, signed

    rows = []
    for answer in answers:
        comparison = answer.comparison
        if comparison is not None:
            low, high = map(signed, comparison.interval)
            interval, effects = f"[{low}, {high}] ({percent(1 - comparison.level)})", comparison.effects
            numbers = (comparison.p, effects.hedges_g, effects.probability, effects.rho)
            rows.append((answer.phase, answer.size, answer.arm, answer.figure, interval, *map(show, numbers)))
    if rows:
        print()
        print_table(EFFECTS, rows)


def _print_seeds(seeds: Sequence[SeedScores]) -> None:
    for scores in seeds:
        print(f"\n{scores.phase}, {scores.size}: {scores.figure} of every seed, the baseline first")
        by_arm = scores.values.values()
        numbers = dict.fromkeys(seed for values in by_arm for seed in values)
        cells = [[values.get(seed, "–") for values in by_arm] for seed in numbers]
        shown = [[cell if isinstance(cell, str) else f"{cell:.6g}" for cell in row] for row in cells]
        rows = [(str(seed), *row) for seed, row in zip(numbers, shown, strict=True)]
        print_table(("seed", *scores.values), rows)


def _print_explorations(explored: Sequence["Exploration"]) -> None:
    from attnlab.reports.differences import format_difference
    from attnlab.statistics.formatting import show

    if not explored:
        return
    print("\nexploratory: other figures, without verdicts; p is adjusted for all of them (Benjamini–Hochberg)")
    rows = []
    for item in explored:
        difference = f"not compared: {item.obstacle}"
        if not item.obstacle:
            difference = format_difference(item.difference, item.interval, item.scale)
        place = (item.phase, item.size, item.arm, item.figure, str(item.num_seeds))
        rows.append((*place, difference, show(item.p), show(item.adjusted)))
    print_table(EXPLORED, rows)
