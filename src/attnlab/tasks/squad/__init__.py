"""SQuAD v1.1 and v2.0: questions, windows of tokens, spans, the null threshold, and an oracle that tests them all."""

from .question import Question
from .spans import Answer, Search, Span
from .task import Squad
from .threshold import NullThreshold

__all__ = ["Answer", "NullThreshold", "Question", "Search", "Span", "Squad"]
