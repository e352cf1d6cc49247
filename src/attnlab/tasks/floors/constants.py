"""The best of several strategies, and a constant answer: the first words of every paragraph."""

from collections.abc import Iterable, Mapping

from ..scores import Reference

NUM_WORDS = (1, 2, 3, 5, 8, 13, 21, 34)
"""Candidate lengths of the opening that answers every question."""


def choose_best(values: Mapping[str, float], *, higher_is_better: bool) -> Reference:
    """Return the strategy with the best value, the first of equal ones."""
    sign = 1 if higher_is_better else -1
    strategy = max(values, key=lambda name: sign * values[name])
    return Reference(values[strategy], strategy)


def answer_first_words(contexts: Iterable[tuple[str, str]], count: int) -> dict[str, str]:
    """Answer every question (id, context) with the first `count` words of its context."""
    return {key: " ".join(context.split(maxsplit=count)[:count]) for key, context in contexts}
