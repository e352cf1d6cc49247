"""Records to pages, tables and pictures: a study's folder as a report that opens offline. It computes no science."""

from .study import REPORT, write

__all__ = ["REPORT", "write"]
