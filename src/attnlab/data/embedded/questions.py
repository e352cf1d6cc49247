"""A small English-like world and questions about it: a set in SQuAD's rows, and one of yes and no in BoolQ's.

Everything is a function of the seed: people with a birthplace, a trade, a year and a friend, told in sentences
whose order and wording vary, so that an answer is found by reading and not by its place.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

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
"""Two ways to tell each fact, its question, and which part of it is the answer."""
SPLIT_SEEDS = {None: 0, "train": 0, "dev": 1}


@dataclass(frozen=True)
class Person:
    """Someone with a value for every part of the facts."""

    parts: dict[str, str]

    def say(self, template: str) -> str:
        """Fill a sentence or a question."""
        return template.format(**self.parts)


def draw_people(draw: random.Random, count: int) -> list[Person]:
    """Draw people of different names."""
    names = [f"{first} {last}" for first in FIRST.split() for last in LAST.split()]
    chosen = draw.sample(names, count)
    return [
        Person(
            {
                "name": name,
                "town": draw.choice(TOWNS.split()),
                "trade": draw.choice(TRADES.split()),
                "year": str(draw.randint(1700, 1999)),
                "thing": draw.choice(THINGS.split()),
                "friend": draw.choice([other for other in names if other not in chosen]),
            }
        )
        for name in chosen
    ]


def tell(draw: random.Random, people: list[Person]) -> tuple[str, dict[tuple[int, str], int]]:
    """Write a paragraph about people; return where the answer to each fact that it tells begins."""
    told = [(number, fact) for number in range(len(people)) for fact in FACTS if draw.random() < 0.7] or [(0, "born")]
    draw.shuffle(told)
    text, starts = "", {}
    for number, fact in told:
        first, second, _, part = FACTS[fact]
        sentence = draw.choice((first, second))
        # The answer is found in the sentence by its place in the template, not by its letters, which may recur.
        before = people[number].say(sentence.split("{" + part + "}")[0])
        text += " " if text else ""
        starts[number, fact] = len(text) + len(before)
        text += people[number].say(sentence)
    return text, starts


@dataclass(frozen=True)
class Questions:
    """Paragraphs with questions in SQuAD's shape; a share of the questions has no answer in its paragraph."""

    articles: int = 40
    paragraphs: int = 5
    people: int = 3
    unanswerable: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.articles, self.paragraphs, self.people, share=self.unanswerable)

    @property
    def kind(self) -> str:
        """Questions whose answers are spans of a context."""
        return "squad"

    @property
    def splits(self) -> tuple[str, ...]:
        """Two sets of the same kind, about different people."""
        return ("train", "dev")

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield one row a question."""
        draw = random.Random(f"questions {self.seed} {SPLIT_SEEDS[split]}")
        number = paragraph = 0
        for article in range(self.articles):
            for _ in range(self.paragraphs):
                people = draw_people(draw, self.people)
                context, starts = tell(draw, people)
                for person, fact in self._asked(draw, starts):
                    yield self._row(f"{split or 'train'}-{number:06}", article, paragraph, context) | _answer(
                        people[person], fact, starts.get((person, fact))
                    )
                    number += 1
                paragraph += 1

    def _asked(self, draw: random.Random, starts: dict[tuple[int, str], int]) -> list[tuple[int, str]]:
        missing = [(n, fact) for n in range(self.people) for fact in FACTS if (n, fact) not in starts]
        asked = []
        for told in starts:
            is_unanswerable = missing and draw.random() < self.unanswerable
            asked.append(missing.pop(draw.randrange(len(missing))) if is_unanswerable else told)
        return asked

    def _row(self, name: str, article: int, paragraph: int, context: str) -> Row:
        return {"id": name, "title": f"Chronicle {article + 1}", "context": context, "paragraph": paragraph}


def _answer(person: Person, fact: str, start: int | None) -> Row:
    _, _, question, part = FACTS[fact]
    is_there = start is not None
    return {
        "question": person.say(question),
        "answers": {
            "text": [person.parts[part]] if is_there else [],
            "answer_start": [start] if is_there else [],
        },
        "is_impossible": not is_there,
    }


@dataclass(frozen=True)
class YesNo:
    """Passages with questions to answer by yes or no, a share of `yes` answered by yes, as BoolQ's 0.62."""

    examples: int = 1000
    people: int = 2
    yes: float = 0.62
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self.examples, self.people, share=self.yes)

    @property
    def kind(self) -> str:
        """Questions with a passage and a label that is true or false."""
        return "boolq"

    @property
    def splits(self) -> tuple[str, ...]:
        """Two sets of the same kind, about different people."""
        return ("train", "dev")

    def rows(self, split: str | None) -> Iterator[Row]:
        """Yield one row a question."""
        draw = random.Random(f"yes or no {self.seed} {SPLIT_SEEDS[split]}")
        for number in range(self.examples):
            people = draw_people(draw, self.people)
            passage, starts = tell(draw, people)
            person, fact = draw.choice(list(starts))
            is_true = draw.random() < self.yes
            stated = people[person] if is_true else self._mistaken(draw, people[person], FACTS[fact][3])
            claim = stated.say(FACTS[fact][0]).rstrip(".")
            yield {"question": f"is it true that {claim}", "passage": passage, "idx": number, "label": is_true}

    def _mistaken(self, draw: random.Random, person: Person, part: str) -> Person:
        """Return the person with another value for a part."""
        while True:
            other = draw_people(draw, 1)[0].parts[part]
            if other != person.parts[part]:
                return Person(person.parts | {part: other})


def _check(*counts: int, share: float) -> None:
    if min(counts) < 1:
        raise DataError(f"an embedded set needs counts of at least 1; it got {min(counts)}")
    if not 0 <= share <= 1:
        raise DataError(f"a share of questions lies between 0 and 1; it got {share:g}")
