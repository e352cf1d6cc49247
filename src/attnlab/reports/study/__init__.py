"""The report of a study: one page that opens offline, tables and figures, read from the study's ledger."""

from .report import REPORT, write_report

__all__ = ["REPORT", "write_report"]
