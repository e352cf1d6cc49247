"""The one place that draws: Vega-Lite specs, and the pictures and pages made of them without a network."""

from . import growth
from .chart import FORMATS, Spec, check, save

__all__ = ["FORMATS", "Spec", "check", "growth", "save"]
