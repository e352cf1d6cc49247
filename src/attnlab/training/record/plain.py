"""Plain data: what JSON holds and gives back the same. NaN and the infinities, which JSON lacks, are spelled out."""

from __future__ import annotations

import math
from typing import Any

from attnlab.errors import TrainingError

SPELLED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def check_plain(value: Any, where: str) -> None:
    """Refuse what JSON would not give back the same, by the name of the place where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TrainingError(f"{where} has the key {key!r}, a {_kind(key)}; JSON keys are text")
            check_plain(inner, f"{where}.{key}")
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            check_plain(inner, f"{where}[{index}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise TrainingError(f"{where} is {value}, which JSON does not have; leave it out, or write it as text")
    elif value is not None and not isinstance(value, str | int):
        raise TrainingError(f"{where} is a {_kind(value)}; JSON takes numbers, text, true, false, null, lists, dicts")


def spell(value: Any) -> Any:
    """Write NaN and the infinities as text, anywhere in plain data."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return _within(value, spell)


def unspell(value: Any) -> Any:
    """Turn the texts of `spell` back into floats."""
    if isinstance(value, str):
        return SPELLED.get(value, value)
    return _within(value, unspell)


def _within(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {key: change(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [change(inner) for inner in value]
    return value


def _kind(value: Any) -> str:
    return type(value).__name__
