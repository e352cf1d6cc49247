"""The results as a table in Markdown, for an issue or a README."""

import re
from collections.abc import Sequence

from .cells import COLUMNS
from .headline import Headline
from .results import PhaseResults

CHOSEN = ("arm", "phase", "size", "figure", "mean", "SD", "seeds", "failed", "difference", "interval", "verdict")
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def write_markdown(headline: Headline, places: Sequence[PhaseResults]) -> str:
    """Write the question, the state, the table, and the notes on arms."""
    rows = [[COLUMNS[name](row) for name in CHOSEN] for place in places for row in place.rows]
    marks = [] if not rows else ["---:" if cell.is_number else "---" for cell in rows[0]]
    lines = [
        f"**{_escape(headline.question)}**", "", _escape(headline.state), "",
        f"| {' | '.join(CHOSEN)} |", f"| {' | '.join(marks)} |",
        *(f"| {' | '.join(_escape(cell.text) for cell in row)} |" for row in rows),
    ]  # fmt: skip
    lines.append("")
    for sentence in (*headline.verdicts, *headline.apart):
        place = _escape(" ".join(filter(None, (sentence.arm, sentence.where))))
        lines += [f"- {place}: {_escape(note)}" for note in sentence.notes]
    return "\n".join(lines).rstrip() + "\n"


def _escape(text: str) -> str:
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
