"""Plain data: what JSON holds and returns unchanged. NaN and the infinities, which JSON lacks, are written as text."""

import math
from collections.abc import Callable
from typing import Any

from attnlab.errors import TrainingError

NONFINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def check_plain(value: Any, where: str) -> None:
    """Raise an error that names the first value that JSON would not return unchanged."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TrainingError(f"{where} has the key {key!r}, a {type(key).__name__}; JSON keys are text")
            check_plain(inner, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            check_plain(inner, f"{where}[{index}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise TrainingError(f"{where} is {value}, which JSON does not have; leave it out, or write it as text")
    elif value is not None and not isinstance(value, str | int):
        kind = type(value).__name__
        raise TrainingError(f"{where} is a {kind}; JSON takes numbers, text, true, false, null, lists, dicts")


def encode_nonfinite(value: Any) -> Any:
    """Write NaN and the infinities as text, anywhere in plain data."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return _map_inner(value, encode_nonfinite)


def decode_nonfinite(value: Any) -> Any:
    """Turn the texts of `encode_nonfinite` back into floats."""
    return NONFINITE.get(value, value) if isinstance(value, str) else _map_inner(value, decode_nonfinite)


def _map_inner(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: change(inner) for key, inner in value.items()}
    return [change(inner) for inner in value] if isinstance(value, list | tuple) else value
