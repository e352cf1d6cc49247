"""The results as a table in Markdown, to be put into an issue or a README."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .cells import COLUMNS
from .headline import Headline
from .results import PhaseResults

CHOSEN = ("arm", "phase", "size", "figure", "mean", "SD", "seeds", "failed", "difference", "interval", "verdict")
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def write_markdown(headline: Headline, places: Sequence[PhaseResults]) -> str:
    """Write question, state, table, and why arms stand apart."""
    rows = [[COLUMNS[name](row) for name in CHOSEN] for place in places for row in place.rows]
    marks = [] if not rows else ["---:" if cell.is_number else "---" for cell in rows[0]]
    lines = [
        f"**{_escape(headline.question)}**", "", _escape(headline.state), "",
        f"| {' | '.join(CHOSEN)} |", f"| {' | '.join(marks)} |",
        *(f"| {' | '.join(_escape(cell.text) for cell in row)} |" for row in rows),
    ]  # fmt: skip
    notes = [(one, note) for one in (*headline.verdicts, *headline.apart) for note in one.notes]
    lines += [
        "",
        *(f"- {_escape(' '.join(filter(None, (one.arm, one.where))))}: {_escape(note)}" for one, note in notes),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _escape(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
