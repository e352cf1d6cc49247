"""Floors: the figure of the best trivial strategy on a task; a model below it has learned nothing of the task."""

from .constants import NUM_WORDS, answer_first_words, choose_best
from .ngrams import NUM_TOKENS, Ids, NgramCounts, compute_ngram_losses, count_tokens
from .sequences import score_sequence_strategies

__all__ = [
    "NUM_TOKENS", "NUM_WORDS", "Ids", "NgramCounts", "answer_first_words", "choose_best", "compute_ngram_losses",
    "count_tokens", "score_sequence_strategies",
]  # fmt: skip
