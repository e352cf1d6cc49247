"""How verbs print what a study says: a verdict for every arm, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attnlab.cli.tables import print_table

if TYPE_CHECKING:
    from attnlab.studies.answers.analysis import Answer
    from attnlab.studies.integrity import IntegrityFinding
    from attnlab.studies.study import Conclusion

COLUMNS = ("phase", "size", "arm", "figure", "difference", "level", "verdict", "stability")


def print_conclusion(conclusion: Conclusion, out: str) -> None:
    """Print what came out of a study, and how to go on where it has not ended."""
    print_answers(conclusion.answers)
    print_findings(conclusion.findings)
    print_failed(conclusion.failed)
    print(f"{conclusion.num_ended} of {conclusion.num_runs} runs have ended; the ledger is {out}/ledger.sqlite")
    if not conclusion.is_whole:
        print("the same command goes on; verdicts come when no run is left to wait for")
    elif conclusion.failed:
        print("the same command tries once more what failed")


def print_answers(answers: Sequence[Answer]) -> None:
    """Print a verdict for every arm, and its notes."""
    # Imported here because the command line must answer --help without loading other rooms.
    from attnlab.reports.differences import format_difference
    from attnlab.studies.answers.analysis import common_notes

    rows = []
    for words in dict.fromkeys(answer.registration for answer in answers if answer.registration):
        print(words)
    for answer in answers:
        span, level, stability = "", "", ""
        if answer.comparison is not None:
            span = format_difference(
                answer.comparison.difference, answer.comparison.interval, answer.comparison.question.scale
            )
            level, stability = f"{100 * (1 - answer.comparison.level):.4g} %", answer.comparison.stability
        rows.append((answer.phase, answer.size, answer.arm, answer.figure, span, level, answer.verdict, stability))
    if rows:
        print_table(COLUMNS, rows)
    common = common_notes(answers)
    for answer in answers:
        for note in answer.notes:
            if note not in common:
                print(f"{answer.phase}, {answer.size}, {answer.arm}: {note}")
    for note in common:
        print(f"every comparison: {note}")


def print_findings(findings: Sequence[IntegrityFinding]) -> None:
    """Print what a study finds when it examines itself, a line each."""
    for finding in findings:
        print(f"{'FAULT' if finding.is_fault else 'note'}: {finding.check}: {finding.sentence}")


def print_failed(failed: Mapping[str, str]) -> None:
    """Print the runs that were given up, and why."""
    for title, reason in failed.items():
        print(f"failed: {title}: {reason}")
