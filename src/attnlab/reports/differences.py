"""How a difference to the baseline is written, in the terminal and in a model card."""

import math


def format_difference(difference: float, interval: tuple[float, float], scale: str = "linear") -> str:
    """Write a difference, and its interval if it has one (one seed has none); in percent on the log scale."""
    low, high = interval
    unit = " %" if scale == "log" else ""
    return f"{difference:+.4g}{unit}" + f" [{low:+.4g}, {high:+.4g}]" * (math.isfinite(low) and math.isfinite(high))
