"""Integrity: what is wrong with a table of results, whoever made it."""

from .finding import IntegrityFinding, IntegrityKind
from .judgement import Judgement, judge
from .reading import read_table
from .request import Request
from .table import Cell, ResultTable

__all__ = ["Cell", "IntegrityFinding", "IntegrityKind", "Judgement", "Request", "ResultTable", "judge", "read_table"]
