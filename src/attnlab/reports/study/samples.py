"""What models said: continuations of prompts side by side, and the losses of given sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.statistics.formatting import show

from .history import History
from .results import read_number, summarize

MOST_SEEDS = 3
MOST_CHARACTERS = 600
MOST_EXPONENT = 700.0
"""Beyond it, e to a loss is no number."""


@dataclass(frozen=True)
class SampleTable:
    """Continuations: a row for every prompt and seed, a cell for every arm."""

    title: str
    arms: Sequence[str]
    rows: Sequence[tuple[str, int, Sequence[str]]]
    note: str


@dataclass(frozen=True)
class SentenceTable:
    """Losses of sentences: a row for every sentence, a cell for every arm."""

    title: str
    arms: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]


def make_sample_table(history: History) -> SampleTable | None:
    """Return what the arms made of the same prompts, at the end of training."""
    last = _find_last_lines(history, "sample")
    if not last:
        return None
    arms = [row.arm for row in history.place.rows if any(arm == row.arm for arm, _ in last)]
    seeds = sorted({seed for _, seed in last})
    prompts = {name: line["prompt"] for lines in last.values() for name, line in lines.items()}
    rows = [
        (prompt, seed, [_shorten(last.get((arm, seed), {}).get(name, {}).get("text", "–")) for arm in arms])
        for name, prompt in prompts.items() for seed in seeds[:MOST_SEEDS]
    ]  # fmt: skip
    more = len(seeds) - MOST_SEEDS
    note = f"The first {MOST_SEEDS} of {len(seeds)} seeds; the ledger has all." if more > 0 else ""
    return SampleTable(history.place.title, arms, rows, note)


def make_sentence_table(history: History) -> SentenceTable | None:
    """Return the loss of every sentence, averaged over seeds, and the perplexity that is e to it."""
    last = _find_last_lines(history, "sentence")
    if not last:
        return None
    arms = [row.arm for row in history.place.rows if any(arm == row.arm for arm, _ in last)]
    texts = {name: line["text"] for lines in last.values() for name, line in lines.items()}
    rows = []
    for name, text in texts.items():
        losses = [
            {
                seed: read_number(lines[name]["loss"])
                for (one, seed), lines in last.items()
                if one == arm and name in lines
            }
            for arm in arms
        ]
        rows.append((_shorten(text), [_format_loss(summarize(some).mean) for some in losses]))
    return SentenceTable(history.place.title, arms, rows)


def _find_last_lines(history: History, kind: str) -> dict[tuple[str, int], dict[str, Mapping[str, Any]]]:
    """Return the lines of every run's last step, by arm and seed and then by name."""
    found: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    for key, lines in history.read_lines(kind).items():
        step = max(line["step"] for line in lines)
        found[key] = {line["name"]: line for line in lines if line["step"] == step}
    return found


def _format_loss(loss: float) -> str:
    """Write a loss, and the perplexity that belongs to it."""
    if math.isnan(loss):
        return "–"
    perplexity = show(math.exp(loss)) if loss < MOST_EXPONENT else "∞"
    return f"{show(loss)} ({perplexity})"


def _shorten(text: str) -> str:
    """Cut a long text, and show that it was cut."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} …"
