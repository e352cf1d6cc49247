"""Classification of texts and pairs of texts: GLUE, BoolQ, and any file with a label column."""

from .glue import BOOLQ, GLUE, SPELLINGS, TEXT
from .labels import Labels, Range
from .task import Classification
from .text import Columns, LabelledText

__all__ = ["BOOLQ", "GLUE", "SPELLINGS", "TEXT", "Classification", "Columns", "LabelledText", "Labels", "Range"]
