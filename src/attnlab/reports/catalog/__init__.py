"""The page of the catalog: every mechanism computed, checked against the reference, timed, and some audited."""

from .catalog_page import render_catalog_page
from .catalog_results import describe_setting, run_catalog

__all__ = ["describe_setting", "render_catalog_page", "run_catalog"]
