"""The top of the page: the question of the study, and the verdict on each arm in one sentence, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.statistics import MEANINGS, verdict_anchor
from attnlab.statistics.verdict import BETTER, WORSE
from attnlab.studies.answers.analysis import Answer, common_notes
from attnlab.studies.answers.study_folder import Record
from attnlab.studies.plan.planning import PlannedRun

from .cells import format_comparison, is_not_comparable
from .results import ArmRow, PhaseResults, list_arms


@dataclass(frozen=True)
class Sentence:
    """A verdict on one arm: its words, the numbers behind it, why, and what must be said beside it."""

    arm: str
    where: str
    """The phase and size, where the study has several."""
    verdict: str
    numbers: str
    reason: str
    notes: tuple[str, ...]
    tone: str
    """good, bad or open."""

    @property
    def anchor(self) -> str:
        """Where the page explains the verdict."""
        return verdict_anchor(self.verdict)


@dataclass(frozen=True)
class Headline:
    """The question, the state of the study, verdicts, and the arms that stand apart."""

    question: str
    state: str
    """How far the study is, and how long its phases are trained."""
    registration: str
    """How its verdicts stand to what was declared beforehand, with the reason; empty where nothing was declared."""
    verdicts: Sequence[Sentence]
    apart: Sequence[Sentence]
    notes: tuple[str, ...] = ()
    """What stands beside every verdict."""

    @property
    def meanings(self) -> list[tuple[str, str, str]]:
        """What the words on the page mean: anchor, word and meaning, each once."""
        said = [one.verdict for one in (*self.verdicts, *self.apart)]
        said += [part for part in self.registration.split("), ") if part]
        words = dict.fromkeys(word for phrase in said for word in _find_words(phrase))
        return [(verdict_anchor(word), word, MEANINGS[word].replace("`", "")) for word in words]


def make_headline(record: Record, places: Sequence[PhaseResults]) -> Headline:
    """Make the headline of a study."""
    rows = [(place, row) for place in places for row in place.rows if row.answer is not None]
    has_several = len({(place.phase, place.size) for place, _ in rows}) > 1
    common = common_notes(record.answers)
    told = [(row, _make_sentence(row, place.title if has_several else "", common)) for place, row in rows]
    return Headline(
        record.design.question or f"the study '{record.design.name}'",
        " ".join([_describe_state(record), _describe_training_length(record)]).rstrip(),
        next((answer.registration for answer in record.answers if answer.registration), ""),
        [sentence for row, sentence in told if not is_not_comparable(row)],
        [sentence for row, sentence in told if is_not_comparable(row)],
        common,
    )  # fmt: skip


def _find_words(phrase: str) -> list[str]:
    """List the words of a verdict that have a meaning of their own."""
    plain = phrase.partition("(")[0]
    return [word for word in MEANINGS if word in plain]


def _make_sentence(row: ArmRow, where: str, common: Sequence[str] = ()) -> Sentence:
    """Make the sentence about one arm. common: notes that are shown once for all arms."""
    answer = row.answer
    assert answer is not None
    notes = tuple(note for note in answer.notes if note not in common)
    reason = "" if answer.comparison is None else answer.comparison.decision.reason
    if is_not_comparable(row):
        verdict, _, why = answer.verdict.partition(" (")
        return Sentence(row.arm, where, verdict, "", _make_sentence_case(why.removesuffix(")")), notes, "bad")
    tone = _choose_tone(answer.verdict)
    return Sentence(row.arm, where, answer.verdict, _write_numbers(answer), _make_sentence_case(reason), notes, tone)


def _write_numbers(answer: Answer) -> str:
    """Write figure, difference, interval and number of pairs."""
    comparison = answer.comparison
    if comparison is None:
        return ""
    num = comparison.data.variant.n
    asked = "" if comparison.data.num_examples is None else f" and {comparison.data.num_examples:,} examples"
    if comparison.data.num_clusters is not None:
        asked += f" in {comparison.data.num_clusters:,} clusters"
    return f"{answer.figure} {format_comparison(comparison)} over {_format_count(num, 'paired seed')}{asked}"


def _make_sentence_case(reason: str) -> str:
    """Write a reason as a sentence."""
    return reason[:1].upper() + reason[1:] + ("" if reason.endswith((".", "?", "!")) or not reason else ".")


def _choose_tone(verdict: str) -> str:
    """Say whether a verdict is good news, bad news or neither."""
    if verdict.startswith(BETTER):
        return "good"
    return "bad" if verdict.startswith(WORSE) else "open"


def _describe_state(record: Record) -> str:
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
            f"{ended} of {num} runs have ended{failed}. Nothing is compared here: there is no second arm, or no phase "
            "has a smallest difference worth having."
        )
    return f"{ended} of {num} runs have ended{failed}; {len(record.design.seeds)} seeds an arm."


def _describe_training_length(record: Record) -> str:
    """Say how long each phase is trained: as its runs have it, which a budget may have changed."""
    said = []
    for phase in record.design.phases:
        alike: dict[str, list[PlannedRun]] = {}
        for arm in list_arms(record):
            for run in record.runs:
                if (run.phase, run.arm) == (phase.name, arm):
                    alike.setdefault(_describe_batches(run), []).append(run)
        if alike:
            first, *others = [f"{words}{_describe_updates(record, runs)}" for words, runs in alike.items()]
            arms = [", ".join(dict.fromkeys(run.arm for run in runs)) for runs in alike.values()][1:]
            apart = "; ".join(f"{names}: {length}" for names, length in zip(arms, others, strict=True))
            said.append(f"{first} in {phase.name}{f' ({apart})' if apart else ''}")
    return f"Length of training: {'; '.join(said)}." if said else ""


def _describe_batches(run: PlannedRun) -> str:
    """Write the updates or epochs of a run and the rows of a batch, segment by segment."""
    return ", then ".join(
        (
            _format_count(segment.epochs or 0, "epoch")
            if segment.steps is None
            else _format_count(segment.steps, "update")
        )
        + f" of {_format_count(segment.batch, 'row')}"
        for segment in run.run.segments
    )


def _describe_updates(record: Record, runs: Sequence[PlannedRun]) -> str:
    """Say how many updates epochs came to, where a run that has ended tells."""
    if all(segment.steps is not None for segment in runs[0].run.segments):
        return ""
    ended = [record.results[run.id].result.get("num_steps") for run in runs if run.id in record.results]
    known = sorted({int(number) for number in ended if number is not None})
    if len(known) > 1:
        return f" ({known[0]:,} to {_format_count(known[-1], 'update')} in all)"
    return f" ({_format_count(known[0], 'update')} in all)" if known else ""


def _format_count(number: float, thing: str) -> str:
    """Write a count with its noun."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {thing}{'' if number == 1 else 's'}"
