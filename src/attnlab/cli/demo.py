"""`attnlab demo`: every mechanism of the catalog computed, checked and timed, some trained, and a report of it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.cli.tables import print_table
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from attnlab.cli.exhibition import Exhibit
    from attnlab.cli.lessons import Lesson

COLUMNS = ("mechanism", "kernel", "time", "time ÷ SDPA", "memory", "memory ÷ SDPA", "largest error", "agrees")
LESSON_COLUMNS = (
    "mechanism", "parameters", "tokens/s", "train loss", "dev perplexity", "honest perplexity", "note",
)  # fmt: skip


def demo(
    out: Annotated[str, typer.Option(metavar="DIR", help="The folder that the report goes into.")] = "out/demo",
) -> int:
    """Compute, check and time every named mechanism, train four, in about two minutes, and write a report."""
    # Imported here because the command line must answer --help without torch.
    from attnlab.cli import exhibition, page

    target = prepare(out)
    shown = exhibition.collect(exhibition.PLAN, show_progress)
    print(f"{shown.machine}\nTime and memory: {shown.where_costs}\nLargest error: {shown.where_checked}")
    print_table(COLUMNS, [cells(exhibit) for exhibit in shown.exhibits])
    remainder = f"; {shown.remainder}" if shown.remainder else ""
    print(f"{shown.score} agree with the fp64 reference, outputs and gradients{remainder}")
    print(shown.audited)
    print(f"Trained: {shown.plan.course.sentence}")
    print_table(LESSON_COLUMNS, [lesson_cells(lesson) for lesson in shown.lessons])
    print("One seed an arm says nothing about which is better; it shows that each trains, and which one is caught.")
    target.write_text(page.render(shown, shlex.join(["attnlab", "demo", "--out", out])), encoding="utf-8")
    print(f"The report is {target}; any browser opens it, without a network.")
    return 0 if shown.holds else 1


def prepare(folder: str) -> Path:
    """Make the folder and return where the report goes; refuse before anything is computed."""
    target = Path(folder) / "report.html"
    if Path(folder).is_file():
        raise RequestError(f"--out needs a folder; {folder} is a file")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"cannot write the report to {target}: {error.strerror}") from error
    if target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        raise RequestError(f"cannot write the report to {target}: it is not writable")
    return target


def show_progress(done: int, total: int, what: str) -> None:
    """Say on a terminal what is being worked on, in one line that the next one replaces."""
    if sys.stderr.isatty():
        line = "" if done == total else f"{done + 1} of {total}: {what}"
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def cells(exhibit: Exhibit) -> tuple[str, ...]:
    """Write one mechanism's row under COLUMNS."""
    from attnlab.kernels.measure import show_bytes, show_seconds, three_digits

    return (
        exhibit.entry.name,
        exhibit.choice.kernel,
        show_seconds(exhibit.own.seconds),
        three_digits(exhibit.time_ratio),
        show_bytes(exhibit.own.memory),
        three_digits(exhibit.memory_ratio),
        f"{exhibit.agreement.error:.1e}",
        exhibit.verdict,
    )


def lesson_cells(lesson: Lesson) -> tuple[str, ...]:
    """Write the row of an arm that was trained, under LESSON_COLUMNS."""
    from attnlab.kernels.measure import three_digits

    return (
        lesson.entry.name,
        f"{lesson.num_parameters:,}",
        f"{lesson.tokens_per_second:,.0f}",
        f"{lesson.train_loss:.2f}",
        three_digits(lesson.perplexity),
        three_digits(lesson.honest_perplexity),
        lesson.note,
    )
