"""The conclusion of a study as verbs print it: a verdict for every arm, notes, findings and failed runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attnlab.cli.joint import print_joint_answers
from attnlab.cli.tables import print_table

if TYPE_CHECKING:
    from attnlab.studies.answers.analysis import Answer
    from attnlab.studies.answers.target import TargetAnswer
    from attnlab.studies.integrity import IntegrityFinding
    from attnlab.studies.study import Conclusion

MAX_PLACES = 4
"""Comparisons that are listed before a note that they share."""
COLUMNS = ("phase", "size", "arm", "figure", "difference", "level", "verdict", "stability")


def print_conclusion(conclusion: "Conclusion", out: str) -> None:
    """Print the conclusion of a study, and how to resume it if it has not ended."""
    print_answers(conclusion.answers)
    print_joint_answers(conclusion.joint_answers)
    print_targets(conclusion.targets)
    print_findings(conclusion.findings)
    print_failed(conclusion.failed)
    print(f"{conclusion.num_ended} of {conclusion.num_runs} runs have ended; the ledger is {out}/ledger.sqlite")
    if not conclusion.is_whole:
        print("the same command resumes the study; verdicts are given when all runs have ended")
    elif conclusion.failed:
        print("the same command retries the runs that failed")
    if conclusion.smoke_test:
        print(conclusion.smoke_test)


def print_answers(answers: Sequence["Answer"]) -> None:
    """Print a verdict for every arm, and its notes."""
    from attnlab.reports.differences import format_difference
    from attnlab.statistics.stability import UNKNOWN
    from attnlab.studies.answers.analysis import explain_answers, explain_unknown_stability

    rows = []
    for words in dict.fromkeys(answer.registration for answer in answers if answer.registration):
        print(words)
    for answer in answers:
        difference, level, stability = "", "", ""
        if (known := answer.comparison) is not None:
            difference = format_difference(known.difference, known.interval, known.question.scale)
            level, stability = f"{100 * (1 - known.level):.4g} %", known.stability
        place = (answer.phase, answer.size, answer.arm, answer.figure)
        rows.append((*place, difference, level, answer.verdict, "" if stability == UNKNOWN else stability))
    if rows:
        # STABILITY UNKNOWN is a note below the table, so a column that has nothing else is omitted.
        num_columns = len(COLUMNS) if any(row[-1] for row in rows) else len(COLUMNS) - 1
        print_table(COLUMNS[:num_columns], [row[:num_columns] for row in rows])
    notes: dict[str, list[str]] = {}
    for answer in answers:
        for note in (*answer.notes, *explain_unknown_stability(answer)):
            notes.setdefault(note, []).append(f"{answer.phase}, {answer.size}, {answer.arm}")
    for note, places in notes.items():
        print(f"{_name_places(places, len(answers))}: {note}")
    for sentence in explain_answers(answers):
        print(sentence)


def print_targets(targets: Sequence["TargetAnswer"]) -> None:
    """Print whether and when every arm reaches the target of a phase."""
    from attnlab.studies.answers.target import COLUMNS as TARGET_COLUMNS
    from attnlab.studies.answers.target import NOTE

    if targets:
        print()
        print_table(TARGET_COLUMNS, [target.cells for target in targets])
        print(NOTE)


def _name_places(places: Sequence[str], num_answers: int) -> str:
    if len(places) == num_answers > 1:
        return "every comparison"
    return "; ".join(places) if len(places) <= MAX_PLACES else f"{len(places)} of {num_answers} comparisons"


def print_findings(findings: Sequence["IntegrityFinding"]) -> None:
    """Print the findings of the integrity checks, one per line."""
    for finding in findings:
        print(f"{'FAULT' if finding.is_fault else 'note'}: {finding.check}: {finding.sentence}")


def print_failed(failed: Mapping[str, str]) -> None:
    """Print the runs that were given up, and why."""
    for title, reason in failed.items():
        print(f"failed: {title}: {reason}")
