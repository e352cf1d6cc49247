"""The top of the page: the question of the study, and the verdict on each arm in one sentence, or why there is none."""

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.statistics import verdict_anchor
from attnlab.statistics.glossary import list_meanings
from attnlab.statistics.verdict import BETTER, WORSE
from attnlab.studies.answers.analysis import Answer, common_notes, explain_answers, explain_unknown_stability
from attnlab.studies.answers.joint_answer import JointAnswer
from attnlab.studies.answers.study_folder import Record
from attnlab.studies.file.smoke_test import describe_smoke_test
from attnlab.studies.plan.audit_keys import list_lines
from attnlab.studies.plan.planning import PlannedRun
from attnlab.training.spec import LANGUAGE

from .answer import rank_interest, write_answer
from .cells import format_comparison, is_not_comparable
from .results import ArmRow, PhaseResults, list_arms


@dataclass(frozen=True)
class Sentence:
    """A verdict on one arm: its words, numbers, reason and notes."""

    arm: str
    where: str
    """The phase and size, if the study has several."""
    verdict: str
    numbers: str
    reason: str
    notes: tuple[str, ...]
    tone: str
    """good, bad or open."""

    @property
    def anchor(self) -> str:
        """The anchor of the verdict's explanation on the page."""
        return verdict_anchor(self.verdict)


@dataclass(frozen=True)
class Headline:
    """The question, the state of the study, verdicts, and the arms that are not comparable."""

    question: str
    answer: str
    """The answer in one sentence, or why there is none."""
    arms: Sequence[tuple[str, str]]
    """The arms whose names do not say what they are, each with its line."""
    state: str
    """The progress of the study, and the length of training of its phases."""
    smoke_test: str
    """That the study is only a smoke test, and what answers its question; empty if it is no smoke test."""
    registration: str
    """How its verdicts relate to what was declared beforehand, with the reason; empty if nothing was declared."""
    verdicts: Sequence[Sentence]
    apart: Sequence[Sentence]
    notes: tuple[str, ...] = ()
    """The notes of all verdicts."""
    joint: Sequence[Sentence] = ()
    """The answers over sizes, horizons and tasks."""
    targets: tuple[str, ...] = ()
    """The verdicts on targets, in the section about them."""

    def list_notes(self) -> list[str]:
        """List the notes of all verdicts, each once, after the arms and places that it is about."""
        subjects: dict[str, list[str]] = {}
        for sentence in (*self.joint, *self.verdicts, *self.apart):
            place = " ".join(filter(None, (sentence.arm, sentence.where)))
            for note in sentence.notes:
                subjects.setdefault(note, []).append(place)
        single = [f"{'; '.join(dict.fromkeys(places))}: {note}" for note, places in subjects.items()]
        return [*single, *(f"{note[:1].upper()}{note[1:]}" for note in self.notes)]

    @property
    def meanings(self) -> list[tuple[str, str, str]]:
        """The words on the page, each once: anchor, word and meaning."""
        phrases = [sentence.verdict for sentence in (*self.joint, *self.verdicts, *self.apart)] + list(self.targets)
        phrases += [part for part in self.registration.split("), ") if part] + list(self.notes)
        meanings = list_meanings(phrases).items()
        return [(verdict_anchor(word), word, meaning.replace("`", "")) for word, meaning in meanings]


def make_headline(record: Record, places: Sequence[PhaseResults]) -> Headline:
    """Make the headline of a study."""
    rows = [(place, row) for place in places for row in place.rows if row.answer is not None]
    has_several = len({(place.phase, place.size) for place, _ in rows}) > 1
    common = common_notes(record.answers)
    baselines = {(place.phase, place.size): row for place in places for row in place.rows if row.is_baseline}
    compared = [row for _, row in rows if not record.design.is_aa(row.arm)]
    of_compared = {place: baselines[place] for place in dict.fromkeys((row.phase, row.size) for row in compared)}
    answer = write_answer(record, compared, of_compared)
    rows.sort(key=lambda pair: rank_interest(pair[1]))
    units = {phase.name: "document" if phase.task.lower() in LANGUAGE else "example" for phase in record.design.phases}
    sentences = [
        (row, _make_sentence(row, place.title if has_several else "", common, units[place.phase]))
        for place, row in rows
    ]
    return Headline(
        record.design.question or f"the study '{record.design.name}'",
        answer,
        list_named_arms(record),
        " ".join([_describe_state(record), _describe_training_length(record)]).rstrip(),
        _make_sentence_case(describe_smoke_test(record.design)),
        next((answer.registration for answer in record.answers if answer.registration), ""),
        [sentence for row, sentence in sentences if not is_not_comparable(row)],
        [sentence for row, sentence in sentences if is_not_comparable(row)],
        (*common, *_explain_stability([row.answer for _, row in rows if row.answer is not None]),
         *explain_answers(record.answers)),
        [_make_joint_sentence(answer) for answer in record.joint_answers],
        tuple(target.verdict for target in record.targets),
    )  # fmt: skip


def list_named_arms(record: Record) -> list[tuple[str, str]]:
    """List the arms with the mechanisms that they stand for, except those that have their line as a name."""
    arms = {arm: ", ".join(list_lines(record.design, arm)) for arm in list_arms(record)}
    return [(arm, lines) for arm, lines in arms.items() if arm != lines]


def _explain_stability(answers: Sequence[Answer]) -> list[str]:
    # Once for all arms, with the reason of each kind.
    return list(dict.fromkeys(note for answer in answers for note in explain_unknown_stability(answer)))


def _make_sentence(row: ArmRow, where: str, common: Sequence[str], unit: str) -> Sentence:
    # common: notes that are shown once for all arms. unit: what the task evaluates.
    answer = row.answer
    assert answer is not None
    notes = tuple(note for note in answer.notes if note not in common)
    reason = "" if answer.comparison is None else answer.comparison.decision.reason
    if is_not_comparable(row):
        verdict, _, why = answer.verdict.partition(" (")
        return Sentence(row.arm, where, verdict, "", _make_sentence_case(why.removesuffix(")")), notes, "bad")
    tone = {BETTER: "good", WORSE: "bad"}.get(answer.verdict.split()[0], "open")
    return Sentence(
        row.arm, where, answer.verdict, _write_numbers(answer, unit), _make_sentence_case(reason), notes, tone
    )


def _make_joint_sentence(answer: JointAnswer) -> Sentence:
    tone = {BETTER: "good", WORSE: "bad"}.get(answer.verdict.split()[0], "open")
    numbers = f"{answer.figure} {answer.numbers}" if answer.numbers else ""
    where, reason = f"{answer.phase}, {answer.size}", _make_sentence_case(answer.reason)
    return Sentence(answer.arm, where, answer.verdict, numbers, reason, answer.notes, tone)


def _write_numbers(answer: Answer, unit: str) -> str:
    comparison = answer.comparison
    if comparison is None:
        return ""
    data = comparison.data
    examples = "" if data.num_examples is None else f" and {_format_count(data.num_examples, unit)}"
    clusters = "" if data.num_clusters is None else f" in {data.num_clusters:,} clusters"
    seeds = _format_count(data.variant.n, "paired seed" if data.paired else "seed")
    return f"difference in {answer.figure} {format_comparison(comparison)} over {seeds}{examples}{clusters}"


def _make_sentence_case(reason: str) -> str:
    return reason[:1].upper() + reason[1:] + ("" if reason.endswith((".", "?", "!")) or not reason else ".")


def _describe_state(record: Record) -> str:
    num, ended, lost = len(record.runs), record.num_ended, len(record.given_up)
    failed = f", {lost} failed" if lost else ""
    if not record.is_whole:
        return (
            f"{ended} of {num} runs have ended{failed}. There are no verdicts yet: they are given when all runs have "
            "ended, since a verdict on some of the seeds would be an undeclared look."
        )
    if not record.answers:
        return (
            f"{ended} of {num} runs have ended{failed}. Nothing is compared here: there is no second arm, or no phase "
            "has a smallest difference of interest."
        )
    return f"{ended} of {num} runs have ended{failed}; {len(record.design.seeds)} seeds per arm."


def _describe_training_length(record: Record) -> str:
    # Read from the runs: a budget may override it.
    lengths = []
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
            lengths.append(f"{first} in {phase.name}{f' ({apart})' if apart else ''}")
    return f"Length of training: {'; '.join(lengths)}." if lengths else ""


def _describe_batches(run: PlannedRun) -> str:
    parts = []
    for segment in run.run.segments:
        length = (segment.epochs or 0, "epoch") if segment.steps is None else (segment.steps, "update")
        parts.append(f"{_format_count(*length)} of {_format_count(segment.batch, 'row')}")
    return ", then ".join(parts)


def _describe_updates(record: Record, runs: Sequence[PlannedRun]) -> str:
    # The updates of epochs are known from a run that has ended.
    if all(segment.steps is not None for segment in runs[0].run.segments):
        return ""
    ended = [record.results[run.id].result.get("num_steps") for run in runs if run.id in record.results]
    known = sorted({int(number) for number in ended if number is not None})
    if len(known) > 1:
        return f" ({known[0]:,} to {_format_count(known[-1], 'update')} in all)"
    return f" ({_format_count(known[0], 'update')} in all)" if known else ""


def _format_count(number: float, thing: str) -> str:
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{shown} {thing}{'' if number == 1 else 's'}"
