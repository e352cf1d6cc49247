"""Integrity: what is wrong with a table of results, whoever made it."""

from .finding import Finding
from .judgement import Judgement, judge
from .reading import read_table
from .table import Cell, ResultTable

__all__ = ["Cell", "Finding", "Judgement", "ResultTable", "judge", "read_table"]
