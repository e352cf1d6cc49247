"""SQuAD v1.1 and v2.0: questions, windows of tokens, spans, the null threshold, and an oracle that tests them all."""

from .question import SquadQuestion
from .spans import Search, Span, SquadAnswer
from .task import Squad
from .threshold import NullThreshold

__all__ = ["NullThreshold", "Search", "Span", "Squad", "SquadAnswer", "SquadQuestion"]
