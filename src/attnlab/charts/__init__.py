"""The one place that draws: Vega-Lite specs, and the pictures and pages made of them without a network."""

from . import growth, heatmap, theme
from .chart import FORMATS, Spec, check, save, svg

__all__ = ["FORMATS", "Spec", "check", "growth", "heatmap", "save", "svg", "theme"]
