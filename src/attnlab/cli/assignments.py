"""`name=value` on the command line: settings by their path, with values as a study file has them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Any

from attnlab.errors import RequestError

NONE = ("none", "null")


def split_assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Split `name=value` texts; anything else, or a name given twice, is an error."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise RequestError(f"{option} takes name=value, as in {option} lr=1e-4; '{text}' is not that")
        if name.strip() in found:
            raise RequestError(f"{option} {name.strip()}= was given twice; give one of them")
        found[name.strip()] = value.strip()
    return found


def read_settings(texts: Iterable[str] | None) -> dict[str, Any]:
    """Read what --set gave: values by their path."""
    return {name: read_value(text) for name, text in split_assignments(texts or [], "--set").items()}


def read_value(text: str) -> Any:
    """Read a value as TOML; `none` is None, and what is not TOML is a text."""
    if text.lower() in NONE:
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
