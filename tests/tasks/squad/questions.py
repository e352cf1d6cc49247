"""Questions about small texts, and SQuAD files of them."""

import json
import random
from pathlib import Path
from typing import Any

from attnlab.tasks.squad import SquadQuestion

CONTEXT = (
    "The Denver Broncos defeated the Carolina Panthers 24–10 to earn their third title. "
    "It was played at Levi's Stadium in Santa Clara, near the café of Köln and 北京."
)


def question(answer: str | None, context: str = CONTEXT, *, key: str = "q1", text: str = "Who won?") -> SquadQuestion:
    """Ask about a context; the answer is where it first stands in it, or nowhere."""
    found = () if answer is None else (answer,)
    return SquadQuestion(key, text, context, found, tuple(context.index(one) for one in found), f"test, {key}")


def write_squad(path: Path, questions: list[SquadQuestion], **changes: Any) -> Path:
    """Write questions as a SQuAD file, one paragraph each; `changes` go into every question."""
    paragraphs = [
        {
            "context": one.context,
            "qas": [
                {
                    "id": one.id,
                    "question": one.text,
                    "answers": [
                        {"text": text, "answer_start": start}
                        for text, start in zip(one.answers, one.starts, strict=True)
                    ],
                    **changes,
                }
            ],
        }
        for one in questions
    ]
    path.write_text(json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]}), "utf-8")
    return path


def many(count: int = 40) -> list[SquadQuestion]:
    """Ask for words of long contexts, each at a place of its own."""
    draw = random.Random(0)
    context = f"{CONTEXT} " * 4
    words = context.split()
    questions = []
    for number in range(count):
        first = draw.randrange(len(words) - 3)
        answer = " ".join(words[first : first + 3])
        start = len(" ".join(words[:first])) + (first > 0)
        questions.append(SquadQuestion(f"q{number}", "Who won?", context, (answer,), (start,), f"row {number}"))
    return questions
