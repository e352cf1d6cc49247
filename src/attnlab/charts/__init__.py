"""The one place that draws: Vega-Lite specs, and the pictures and pages made of them without a network."""

from . import curves, evidence, growth, heatmap, histogram, panels, soundness, theme
from .chart import FORMATS, Spec, check, save, stacked, svg

__all__ = [
    "FORMATS",
    "Spec",
    "check",
    "curves",
    "evidence",
    "growth",
    "heatmap",
    "histogram",
    "panels",
    "save",
    "soundness",
    "stacked",
    "svg",
    "theme",
]
