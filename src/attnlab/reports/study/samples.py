"""Texts of models: continuations of prompts side by side, and the losses of given sentences."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnlab.statistics.formatting import show

from .history import History
from .results import read_number, summarize

MAX_SEEDS = 3
MAX_CHARACTERS = 600
MAX_EXPONENT = 700.0
"""The largest loss whose exponential is finite."""


@dataclass(frozen=True)
class ArmTable:
    """A table with a column for every arm; a row has its names first, and its cells last."""

    title: str
    arms: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    note: str = ""


def make_sample_table(history: History) -> ArmTable | None:
    """Return the continuations of prompts at the end of training: a row for every prompt and seed."""
    last = _find_last_lines(history, "sample")
    if not last:
        return None
    arms = _list_arms(history, last)
    seeds = sorted({seed for _, seed in last})
    prompts = {name: line["prompt"] for lines in last.values() for name, line in lines.items()}
    rows = [
        (prompt, seed, [_shorten(last.get((arm, seed), {}).get(name, {}).get("text", "–")) for arm in arms])
        for name, prompt in prompts.items() for seed in seeds[:MAX_SEEDS]
    ]  # fmt: skip
    note = f"The first {MAX_SEEDS} of {len(seeds)} seeds; the ledger has all." if len(seeds) > MAX_SEEDS else ""
    return ArmTable(history.place.title, arms, rows, note)


def make_sentence_table(history: History) -> ArmTable | None:
    """Return the loss of every sentence, averaged over seeds, and its exponential, the perplexity."""
    last = _find_last_lines(history, "sentence")
    if not last:
        return None
    arms, rows = _list_arms(history, last), []
    texts = {name: line["text"] for lines in last.values() for name, line in lines.items()}
    for name, text in texts.items():
        losses: dict[str, dict[int, float | None]] = {arm: {} for arm in arms}
        for (arm, seed), lines in last.items():
            if name in lines:
                losses[arm][seed] = read_number(lines[name]["loss"])
        rows.append((_shorten(text), [_format_loss(summarize(by_seed).mean) for by_seed in losses.values()]))
    return ArmTable(history.place.title, arms, rows)


def _list_arms(history: History, last: Mapping[tuple[str, int], Any]) -> list[str]:
    return [row.arm for row in history.place.rows if any(arm == row.arm for arm, _ in last)]


def _find_last_lines(history: History, kind: str) -> dict[tuple[str, int], dict[str, Mapping[str, Any]]]:
    """Return the lines of the last step of every run, by arm and seed and then by name."""
    last: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    for key, lines in history.read_lines(kind).items():
        step = max(line["step"] for line in lines)
        last[key] = {line["name"]: line for line in lines if line["step"] == step}
    return last


def _format_loss(loss: float) -> str:
    if math.isnan(loss):
        return "–"
    return f"{show(loss)} ({show(math.exp(loss)) if loss < MAX_EXPONENT else '∞'})"


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]} …"
