"""Where a run's config says that things are: the only part of it that may change, since its id is of contents."""

from __future__ import annotations

import copy
from typing import Any

SOURCES = ("train", "dev", "tokenizer")


def readdressed(kept: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Return a config with the places and names of another one of the same run."""
    found = copy.deepcopy(kept)
    found["start"]["checkpoint"] = now["start"]["checkpoint"]
    for name in SOURCES:
        found["data"][name] = now["data"][name]
    for segment, own in zip(found["segments"], now["segments"], strict=True):
        segment["name"] = own["name"]
    return found
