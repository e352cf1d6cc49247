"""The page of the catalog: every mechanism computed, checked against the reference, timed, and some audited."""

from .catalog_page import render
from .catalog_results import collect, describe_setting

__all__ = ["collect", "describe_setting", "render"]
