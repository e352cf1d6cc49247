"""Records to pages, tables and pictures: the report of a study, the catalog's page, model cards, the watch page."""

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .study import REPORT, write_report

__all__ = ["REPORT", "write_report"]

__getattr__, __dir__ = load_on_first_use(__name__)
