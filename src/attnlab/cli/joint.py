"""Answers over sizes, horizons and tasks as verbs print them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attnlab.cli.tables import print_table

if TYPE_CHECKING:
    from attnlab.studies.answers.joint_answer import JointAnswer

COLUMNS = ("phase", "size", "arm", "figure", "value", "level", "verdict")


def print_joint_answers(answers: Sequence["JointAnswer"]) -> None:
    """Print an answer per line, then the difference at each size, horizon or task, and the notes."""
    from attnlab.statistics.formatting import signed

    rows = []
    for answer in answers:
        level = "" if answer.level is None else f"{100 * (1 - answer.level):.4g} %"
        rows.append((answer.phase, answer.size, answer.arm, answer.figure, answer.numbers, level, answer.verdict))
    if rows:
        print()
        print_table(COLUMNS, rows)
    for answer in answers:
        if answer.points:
            shown = (f"{point.name} {signed(point.difference)}{answer.unit}" for point in answer.points)
            print(f"{answer.place}: {', '.join(shown)}")
        for note in (answer.reason, *answer.notes):
            if note:
                print(f"{answer.place}: {note}")
