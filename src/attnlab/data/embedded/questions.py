"""Generated English questions about invented people: one set in SQuAD's format, one of yes-no questions in BoolQ's.

Everything is a function of the seed. The order and the wording of the sentences vary, so the position of a sentence
does not reveal the answer.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from attnlab.errors import DataError

from ..sources.rows import Row

FIRST = "Ada Bruno Clara Dario Elsa Felix Greta Hugo Ida Jonas Karla Leo Mira Nils Olga Pavel Rosa Simon Tilda Viktor"
LAST = "Abel Brandt Castro Dahl Ebner Fontana Garcia Holm Ivanov Jansen Keller Lindqvist Moretti Novak Okafor Petrov"
TOWNS = "Aldermoor Bellwick Carrow Dunfell Eastmere Farrow Glenholt Harwick Inverlake Kestrel Larkhill Morwen Northam"
TRADES = "baker carpenter doctor farmer gardener judge librarian miller painter sailor smith tailor teacher weaver"
THINGS = "bridge clock garden library mill museum orchard school theatre tower"
FACTS = {
    "born": ("{name} was born in {town}.", "The birthplace of {name} is {town}.", "Where was {name} born?", "town"),
    "trade": ("{name} worked as a {trade}.", "By trade, {name} was a {trade}.", "What trade had {name}?", "trade"),
    "year": ("In {year}, {name} moved away.", "{name} left home in {year}.", "When did {name} leave home?", "year"),
    "built": ("{name} built the old {thing}.", "The old {thing} is by {name}.", "What did {name} build?", "thing"),
    "friend": ("{name} wrote to {friend}.", "{friend} was {name}'s friend.", "Who was a friend of {name}?", "friend"),
}  # fmt: skip
"""Two wordings of each fact, its question, and the part of the fact that is the answer."""
SPLIT_SEEDS = {None: 0, "train": 0, "dev": 1}

Person = dict[str, str]
"""A value for every part of the facts."""


def _draw_people(draw: random.Random, count: int) -> list[Person]:
    names = [f"{first} {last}" for first in FIRST.split() for last in LAST.split()]
    chosen = draw.sample(names, count)
    return [
        {
            "name": name,
            "town": draw.choice(TOWNS.split()),
            "trade": draw.choice(TRADES.split()),
            "year": str(draw.randint(1700, 1999)),
            "thing": draw.choice(THINGS.split()),
            "friend": draw.choice([other for other in names if other not in chosen]),
        }
        for name in chosen
    ]


def _write_paragraph(draw: random.Random, people: list[Person]) -> tuple[str, dict[tuple[int, str], int]]:
    """Write a paragraph about people; return it, and where the answer to each of its facts begins."""
    facts = [(number, fact) for number in range(len(people)) for fact in FACTS if draw.random() < 0.7] or [(0, "born")]
    draw.shuffle(facts)
    text, starts = "", {}
    for number, fact in facts:
        first, second, _, part = FACTS[fact]
        sentence = draw.choice((first, second))
        # The answer is located by its place in the template, since its letters may occur more than once.
        before = sentence.split("{" + part + "}")[0].format(**people[number])
        text += " " if text else ""
        starts[number, fact] = len(text) + len(before)
        text += sentence.format(**people[number])
    return text, starts


@dataclass(frozen=True)
class Questions:
    """Paragraphs with questions in SQuAD's format; a share of the questions has no answer in its paragraph."""

    kind: ClassVar[str] = "squad"
    splits: ClassVar[tuple[str, ...]] = ("train", "dev")

    articles: int = 40
    paragraphs: int = 5
    people: int = 3
    unanswerable: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.articles, self.paragraphs, self.people, share=self.unanswerable)

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield one row per question."""
        draw = random.Random(f"questions {self.seed} {SPLIT_SEEDS[split]}")
        number = paragraph = 0
        for article in range(self.articles):
            for _ in range(self.paragraphs):
                people = _draw_people(draw, self.people)
                context, starts = _write_paragraph(draw, people)
                shared = {"title": f"Chronicle {article + 1}", "context": context, "paragraph": paragraph}
                for person, fact in self._choose_questions(draw, starts):
                    _, _, question, part = FACTS[fact]
                    start = starts.get((person, fact))
                    is_impossible = start is None
                    yield {
                        "id": f"{split or 'train'}-{number:06}",
                        **shared,
                        "question": question.format(**people[person]),
                        "answers": {
                            "text": [] if is_impossible else [people[person][part]],
                            "answer_start": [] if is_impossible else [start],
                        },
                        "is_impossible": is_impossible,
                    }
                    number += 1
                paragraph += 1

    def _choose_questions(self, draw: random.Random, starts: dict[tuple[int, str], int]) -> list[tuple[int, str]]:
        missing = [(n, fact) for n in range(self.people) for fact in FACTS if (n, fact) not in starts]
        questions = []
        for answerable in starts:
            is_unanswerable = missing and draw.random() < self.unanswerable
            questions.append(missing.pop(draw.randrange(len(missing))) if is_unanswerable else answerable)
        return questions


@dataclass(frozen=True)
class YesNo:
    """Passages with yes-no questions; `yes` is the share answered by yes, 0.62 as in BoolQ."""

    kind: ClassVar[str] = "boolq"
    splits: ClassVar[tuple[str, ...]] = ("train", "dev")

    examples: int = 1000
    people: int = 2
    yes: float = 0.62
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.examples, self.people, share=self.yes)

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield one row per question."""
        draw = random.Random(f"yes or no {self.seed} {SPLIT_SEEDS[split]}")
        for number in range(self.examples):
            people = _draw_people(draw, self.people)
            passage, starts = _write_paragraph(draw, people)
            person, fact = draw.choice(list(starts))
            is_true = draw.random() < self.yes
            template, _, _, part = FACTS[fact]
            value = people[person][part]
            while not is_true and value == people[person][part]:
                value = _draw_people(draw, 1)[0][part]
            claim = template.format(**people[person] | {part: value}).rstrip(".")
            yield {"question": f"is it true that {claim}", "passage": passage, "idx": number, "label": is_true}


def _check(*counts: int, share: float) -> None:
    if min(counts) < 1:
        raise DataError(f"an embedded set needs counts of at least 1; got {min(counts)}")
    if not 0 <= share <= 1:
        raise DataError(f"a share of questions must be between 0 and 1; got {share:g}")
