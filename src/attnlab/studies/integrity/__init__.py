"""Integrity: what is wrong with a table of results, whoever made it, and with a study's own runs."""

from .finding import IntegrityFinding, IntegrityKind
from .judgement import Judgement, judge
from .options import JudgeOptions
from .tables.reading import TableHints, read_table
from .tables.table import Cell, ResultTable

__all__ = [
    "Cell", "IntegrityFinding", "IntegrityKind", "JudgeOptions", "Judgement", "ResultTable", "TableHints", "judge",
    "read_table",
]  # fmt: skip
