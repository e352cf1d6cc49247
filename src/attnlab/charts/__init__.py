"""Charts: Vega-Lite specs, and pictures and pages made of them without a network."""

from . import curves, evidence, forest, growth, head_grid, heatmap, histogram, panels, seeds, soundness, theme
from .chart import FORMATS, Chart, Spec, check, png, runtime, save, stack, svg

__all__ = [
    "FORMATS", "Chart", "Spec", "check", "curves", "evidence", "forest", "growth", "head_grid", "heatmap", "histogram",
    "panels", "png", "runtime", "save", "seeds", "soundness", "stack", "svg", "theme",
]  # fmt: skip
