"""`attnlab judge`: what is wrong with a table of results, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.cli.tables import print_below, print_json, print_table
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from attnlab.studies.integrity import Finding, Judgement
    from attnlab.studies.integrity.analysis import Analysis, Row

COLUMNS = (
    "arm", "group", "metric", "seeds", "baseline", "variant", "SD ratio", "difference", "95 %", "p", "Holm p",
    "verdict", "seeds needed",
)  # fmt: skip


def judge(
    table: Annotated[
        str,
        typer.Argument(metavar="TABLE.csv|DIR", help="Results by arm and seed, long or wide; or a study's folder."),
    ],
    mapping: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="PART=COLUMN,…",
            help="Which column is arm, seed, metric, step, value or group; for wide tables "
            "columns={arm}_{group}_{metric}_{seed}. Guessed and shown where not said.",
        ),
    ] = None,
    baseline: Annotated[str | None, typer.Option(metavar="ARM", help="The arm that others are compared with.")] = None,
    examples: Annotated[
        int | None, typer.Option(metavar="N", help="Size of the evaluation set: accuracies are multiples of 1/N.")
    ] = None,
    summary: Annotated[
        str | None, typer.Option(metavar="FILE", help="Reported means and SDs, to hold against the table.")
    ] = None,
    smallest: Annotated[
        float | None, typer.Option(metavar="X", help="Smallest difference worth having; one point unless said.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything for programs to read.")] = False,
) -> int:
    """Examine anybody's result table for faults, and say what it shows; or a study of your own."""
    if examples is not None and examples < 1:
        raise RequestError(f"--examples takes a number from 1 on; it has {examples}")
    if smallest is not None and not 0 < smallest < float("inf"):
        raise RequestError(f"--smallest takes a number above 0; it has {smallest}")
    if Path(table).expanduser().is_dir():
        given = {"--map": mapping, "--baseline": baseline, "--examples": examples, "--summary": summary}
        return judge_study(table, {**given, "--smallest": smallest}, as_json)
    # Imported here because the command line must answer --help without numpy.
    from attnlab.studies.integrity import judge as examine
    from attnlab.studies.integrity import read_table
    from attnlab.studies.integrity.judgement import Request

    judgement = examine(read_table(table, mapping, baseline), Request(examples, summary, smallest))
    if as_json:
        print_json(judgement.record())
    else:
        print_judgement(judgement)
    return 0 if judgement.is_clean else 1


def judge_study(folder: str, given: Mapping[str, object], as_json: bool) -> int:
    """Examine the study in a folder; what a table must be told with, its ledger says itself."""
    unwanted = next((option for option, value in given.items() if value is not None), None)
    if unwanted is not None:
        raise RequestError(f"{unwanted} is for a table, and {folder} is a folder, whose ledger says it; leave it out")
    # Imported here because a table is examined without torch.
    from attnlab.studies.record import open_record

    with open_record(folder) as record:
        findings, is_clean = record.findings, not any(finding.is_fault for finding in record.findings)
        if as_json:
            print_json({
                "study": record.design.name, "runs": len(record.runs), "ended": record.num_ended, "is_clean": is_clean,
                "findings": [finding.record() for finding in findings],
            })  # fmt: skip
        else:
            arms = ", ".join(record.design.arms)
            print(f"{record.design.name}: {record.num_ended} of {len(record.runs)} runs have ended; arms {arms}")
            print_below(f"Read from the ledger of {folder}; baseline '{record.design.baseline}'.")
            for finding in findings:
                print_finding(finding)
            print_count(findings)
    return 0 if is_clean else 1


def print_finding(finding: Finding) -> None:
    """Print one finding."""
    print(f"\n{'FAULT' if finding.is_fault else 'note '}  {finding.check}")
    print_below(f"{finding.sentence}.")


def print_count(findings: Sequence[Finding]) -> None:
    """Print how many faults were found."""
    num = sum(finding.is_fault for finding in findings)
    print(f"\n{num} {'fault' if num == 1 else 'faults'} found." if num else "\nNo fault found.")


def print_judgement(judgement: Judgement) -> None:
    """Print how the table was read, what was found, and what it shows."""
    table = judgement.table
    metrics, arms = ", ".join(table.metrics), ", ".join(table.arms)
    print(f"{table.name}: {len(table.cells)} values of {metrics or 'nothing'}; arms {arms or 'none'}")
    print_below(f"Read as: {'; '.join(table.layout)}; baseline '{table.baseline}'. --map and --baseline change it.")
    for finding in judgement.findings:
        print_finding(finding)
    for analysis in judgement.analyses:
        print_analysis(analysis)
    if len(table.arms) < 2:
        print("\nOne arm alone: nothing is compared. --map arm=COLUMN says which column names the arms.")
    print_count(judgement.findings)


def print_analysis(analysis: Analysis) -> None:
    """Print one step: every arm against the baseline."""
    if not analysis.rows:
        return
    print(f"\nAnalysis of {analysis.title}")
    print_table(COLUMNS, [cells(row) for row in analysis.rows])
    print_below(
        "Unpaired, since nothing shows that runs of one seed began alike (Welch's t); verdicts of one metric are one "
        "family (Holm); seeds needed are for 80 and 90 % power to see the smallest difference of interest, "
        + ", ".join(dict.fromkeys(f"{row.comparison.question.smallest:.3g} of {row.metric}" for row in analysis.rows))
        + "."
    )


def cells(row: Row) -> tuple[str, ...]:
    """Write one comparison under COLUMNS."""
    from attnlab.statistics.account import show, show_count, signed

    known, alone = row.comparison.known, row.alone
    low, high = alone.interval
    return (
        row.arm,
        row.group or "–",
        row.metric,
        str(known.baseline.n) if known.baseline.n == known.variant.n else f"{known.baseline.n}, {known.variant.n}",
        mean_and_sd(known.baseline.mean, known.baseline.sd),
        mean_and_sd(known.variant.mean, known.variant.sd),
        show(alone.spread.ratio),
        signed(alone.difference),
        f"[{signed(low)}, {signed(high)}]",
        show(alone.p),
        show(row.adjusted),
        row.comparison.verdict,
        " / ".join(show_count(seeds) for seeds in alone.plan.seeds.values()),
    )


def mean_and_sd(mean: float, sd: float) -> str:
    """Write a mean with its SD; that of one seed is unknown."""
    return f"{mean:.4g}" if sd != sd else f"{mean:.4g} ± {sd:.3g}"
