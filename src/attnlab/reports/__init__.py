"""Records to pages, tables and pictures: a study's folder as a report that opens offline. It computes no science."""

from .study import REPORT, write_report

__all__ = ["REPORT", "write_report"]
