"""Floors: what the best of the trivial strategies reaches on a task, below which a model has learned nothing of it."""

from .best import best_of
from .constants import best_constant_class
from .ngrams import NUM_TOKENS, NgramCounts, count_tokens, ngram_losses
from .openings import NUM_WORDS, first_words
from .sequences import sequence_strategies

__all__ = [
    "NUM_TOKENS", "NUM_WORDS", "NgramCounts", "best_constant_class", "best_of", "count_tokens", "first_words",
    "ngram_losses", "sequence_strategies",
]  # fmt: skip
