"""A question about a text with its gold answers: the examples of SQuAD v1.1 and v2.0."""

from dataclasses import dataclass
from pathlib import Path

from attnlab.data import Source
from attnlab.errors import TaskError

from ..reading import Row, check_unique_ids, find_column, get_source, read_rows


@dataclass(frozen=True, slots=True)
class SquadQuestion:
    """A question, its context, and every gold answer with the character it starts at; no answers: unanswerable."""

    id: str
    text: str
    context: str
    answers: tuple[str, ...]
    starts: tuple[int, ...]
    place: str
    title: str = ""
    """The article of the context; empty if the source does not name it."""

    @property
    def cluster(self) -> str:
        """What dependent questions share: the article, or else the context."""
        return self.title or self.context

    def span(self, which: int) -> tuple[int, int]:
        """Return the characters of a gold answer in the context, without whitespace at its ends."""
        answer, start = self.answers[which], self.starts[which]
        if start < 0 or self.context[start : start + len(answer)] != answer:
            actual = self.context[max(start, 0) : max(start, 0) + len(answer)]
            raise TaskError(
                f"{self.place}: the answer {answer!r} of question '{self.id}' should be at character {start} of its "
                f"context, but the text there is {actual!r}; correct answer_start"
            )
        solid = answer.strip()
        begin = start + answer.index(solid)
        return begin, begin + len(solid)


def read_questions(source: str | Path | Source, split: str | None = None) -> list[SquadQuestion]:
    """Read the questions of a source in SQuAD's form; errors name the place."""
    questions = [_read_question(row, place) for place, row in read_rows(get_source(source, split))]
    check_unique_ids(questions)
    return questions


def _read_question(row: Row, place: str) -> SquadQuestion:
    for needed in ("id", "question", "context", "answers"):
        find_column(row, [needed], place)
    text, context, title = str(row["question"]).strip(), str(row["context"]), str(row.get("title") or "")
    answers, starts = (tuple(row["answers"][name]) for name in ("text", "answer_start"))
    question = SquadQuestion(str(row["id"]), text, context, answers, starts, place, title)
    for what, text in (("context", question.context), ("question", question.text)):
        if not text.strip():
            raise TaskError(f"{place}: question '{question.id}' has an empty {what}; fill it in or remove the row")
    for answer in question.answers:
        if not answer.strip():
            raise TaskError(f"{place}: question '{question.id}' has an empty gold answer; remove it from 'answers'")
    return question
