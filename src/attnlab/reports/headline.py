"""What the study says first: its question, and of every arm the verdict in one sentence, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.statistics.verdict import BETTER, WORSE
from attnlab.studies.analysis import Answer
from attnlab.studies.record import Record

from .cells import difference_in_words, is_apart
from .results import Place, Row


@dataclass(frozen=True)
class Sentence:
    """A verdict on one arm: its words, the numbers behind it, why, and what must be said beside it."""

    arm: str
    where: str
    """The stage and size, where the study has several."""
    verdict: str
    numbers: str
    reason: str
    notes: tuple[str, ...]
    tone: str
    """good, bad or open."""


@dataclass(frozen=True)
class Headline:
    """The question, the state of the study, verdicts, and the arms that stand apart."""

    question: str
    state: str
    verdicts: Sequence[Sentence]
    apart: Sequence[Sentence]


def headline_of(record: Record, places: Sequence[Place]) -> Headline:
    """Say what the study says."""
    rows = [(place, row) for place in places for row in place.rows if row.answer is not None]
    has_several = len({(place.stage, place.size) for place, _ in rows}) > 1
    told = [(row, sentence_of(row, place.title if has_several else "")) for place, row in rows]
    return Headline(
        record.design.question or f"the study '{record.design.name}'", state_of(record),
        [sentence for row, sentence in told if not is_apart(row)],
        [sentence for row, sentence in told if is_apart(row)],
    )  # fmt: skip


def sentence_of(row: Row, where: str) -> Sentence:
    """Say what came of one arm."""
    answer = row.answer
    assert answer is not None
    reason = "" if answer.comparison is None else answer.comparison.decision.reason
    if is_apart(row):
        verdict, _, why = answer.verdict.partition(" (")
        return Sentence(row.arm, where, verdict, "", said(why.removesuffix(")")), answer.notes, "bad")
    tone = tone_of(answer.verdict)
    return Sentence(row.arm, where, answer.verdict, numbers_of(answer), said(reason), answer.notes, tone)


def numbers_of(answer: Answer) -> str:
    """Write figure, difference, interval and number of pairs."""
    comparison = answer.comparison
    if comparison is None:
        return ""
    num = comparison.known.variant.n
    seeds = f"{num} paired seed{'s' if num != 1 else ''}"
    return f"{answer.figure} {difference_in_words(comparison)} over {seeds}"


def said(reason: str) -> str:
    """Write a reason as a sentence."""
    return reason[:1].upper() + reason[1:] + ("" if reason.endswith((".", "?", "!")) or not reason else ".")


def tone_of(verdict: str) -> str:
    """Say whether a verdict is good news, bad news or neither."""
    if verdict.startswith(BETTER):
        return "good"
    return "bad" if verdict.startswith(WORSE) else "open"


def state_of(record: Record) -> str:
    """Say how far the study is."""
    num, ended, lost = len(record.runs), record.num_ended, len(record.given_up)
    failed = f", {lost} failed" if lost else ""
    if not record.is_whole:
        return (
            f"{ended} of {num} runs have ended{failed}. There are no verdicts yet: they come when no run is left to "
            "wait for, since one on the seeds that happen to be there would be a look that nobody declared."
        )
    if not record.answers:
        return (
            f"{ended} of {num} runs have ended{failed}. Nothing is compared here: there is no second arm, or no stage "
            "has a smallest difference worth having."
        )
    return f"{ended} of {num} runs have ended{failed}; {len(record.design.seeds)} seeds an arm."
