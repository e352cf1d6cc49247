"""`attnlab judge`: check a table of results for faults, and print what it shows."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from attnlab.cli.conclusion import print_answers
from attnlab.cli.joint import print_joint_answers
from attnlab.cli.judgement import print_count, print_finding, print_judgement
from attnlab.cli.options import AsJson
from attnlab.cli.tables import print_below, print_json
from attnlab.errors import RequestError
from attnlab.inputs import check_regular, expand_path


def judge(
    table: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…|DIR",
            help="Results by arm and seed: CSV, JSON (also lm-eval's), a LaTeX or Markdown table, a W&B or MLflow "
            "export; several files are one table. Or a study's folder.",
        ),
    ],
    mapping: Annotated[
        str | None,
        typer.Option(
            "--map",
            metavar="PART=COLUMN,…",
            help="Which column is arm, seed, metric, step, value, group, examples or num_seeds; for wide tables "
            "columns={arm}_{metric}_{seed}; table=N of a file with several. Guessed and shown if omitted.",
        ),
    ] = None,
    baseline: Annotated[str | None, typer.Option(metavar="ARM", help="The arm that others are compared with.")] = None,
    examples: Annotated[
        int | None,
        typer.Option(metavar="N", help="Size of the evaluation set, for accuracies. Default: a column such as n_test."),
    ] = None,
    summary: Annotated[
        str | None, typer.Option(metavar="FILE", help="Reported means and SDs to check against the table.")
    ] = None,
    smallest: Annotated[
        str | None,
        typer.Option(
            metavar="X|METRIC=X,…",
            help="Smallest difference of interest, in units of the table; default: one point, or 1 %.",
        ),
    ] = None,
    floor: Annotated[
        str | None, typer.Option(metavar="X|METRIC=X,…", help="Score of a trivial strategy, as the majority class.")
    ] = None,
    units: Annotated[
        str | None,
        typer.Option(metavar="UNIT|METRIC=UNIT,…", help="For mixed units: percent, fraction, convert (× 100)."),
    ] = None,
    primary: Annotated[
        str | None, typer.Option(metavar="METRIC,…", help="Metrics that get a verdict; default: all.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="The metric, if the table does not name it, such as accuracy.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(metavar="N", help="Over how many seeds each mean ± SD is.")] = None,
    spread: Annotated[
        str | None, typer.Option(metavar="sd|se|ci", help="What ± is: SD (default), standard error, 95 % interval.")
    ] = None,
    paired: Annotated[
        bool, typer.Option("--paired", help="Runs with the same seed are pairs: same initial weights and data order.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Check a table of results for faults and print what it shows; or the folder of a study."""
    if examples is not None and examples < 1:
        raise RequestError(f"--examples must be 1 or more, not {examples}")
    for file in filter(None, (*table, summary)):
        check_regular(expand_path(file))
    paths = _list_files(table)
    if not paths:
        given = {
            "--map": mapping, "--baseline": baseline, "--examples": examples, "--summary": summary,
            "--smallest": smallest, "--floor": floor, "--units": units, "--primary": primary, "--metric": metric,
            "--seeds": seeds, "--spread": spread, "--paired": paired or None,
        }  # fmt: skip
        return _judge_study(table[0], given, as_json)
    from attnlab.studies.integrity import judge as examine
    from attnlab.studies.integrity import read_table
    from attnlab.studies.integrity.options import JudgeOptions, read_hints, read_names, read_numbers, read_texts

    options = JudgeOptions(
        examples, summary, read_numbers("--smallest", smallest), read_numbers("--floor", floor),
        read_texts("--units", units), read_names(primary), paired,
    )  # fmt: skip
    judgement = examine(read_table(paths, mapping, baseline, read_hints(metric, seeds, spread)), options)
    if as_json:
        print_json(judgement.record())
    else:
        print_judgement(judgement)
    return 0 if judgement.is_clean else 1


def _list_files(given: Sequence[str]) -> list[str]:
    """Return the files to read as one table; of a folder without a study, lm-eval's results; none for a study."""
    folders = [path for path in map(expand_path, given) if path.is_dir()]
    if len(given) == 1 and folders and (folders[0] / "ledger.sqlite").exists():
        return []
    files: list[str] = []
    from attnlab.studies.integrity.tables.formats.files import find_result_files

    for name in given:
        path = expand_path(name)
        found = find_result_files(path) if path.is_dir() else [str(path)]
        if not found:
            raise RequestError(
                f"{name} holds no study: it has no ledger.sqlite, and no results*.json of lm-eval. A folder must hold "
                "one of these; other tables are given as files, such as results.csv"
            )
        files += found
    return files


def _judge_study(folder: str, given: Mapping[str, object], as_json: bool) -> int:
    unwanted = next((option for option, value in given.items() if value is not None), None)
    if unwanted is not None:
        raise RequestError(f"{unwanted} is only for tables; omit it, since the ledger in {folder} has this information")
    from attnlab.studies.answers.study_folder import open_record

    with open_record(folder) as record:
        findings, is_clean = record.findings, not any(finding.is_fault for finding in record.findings)
        if as_json:
            print_json({
                "study": record.design.name, "runs": len(record.runs), "ended": record.num_ended, "is_clean": is_clean,
                "findings": [finding.record() for finding in findings],
                "answers": [answer.record() for answer in record.answers],
                "joint_answers": [answer.record() for answer in record.joint_answers],
            })  # fmt: skip
        else:
            arms = ", ".join(record.design.arms)
            print(f"{record.design.name}: {record.num_ended} of {len(record.runs)} runs have ended; arms {arms}")
            print_below(f"Read from the ledger of {folder}; baseline '{record.design.baseline}'.")
            for finding in findings:
                print_finding(finding)
            if record.answers:
                print("\nWhat it shows")
                print_answers(record.answers)
                print_joint_answers(record.joint_answers)
            print_count(findings)
    return 0 if is_clean else 1
