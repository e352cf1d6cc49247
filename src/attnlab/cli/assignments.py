"""`name=value` on the command line: settings by their path, with values as in a study file."""

import tomllib
from collections.abc import Iterable
from typing import Any

from attnlab.errors import RequestError


def split_assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Split `name=value` texts; anything else, or a name given twice, is an error."""
    values: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name:
            raise RequestError(f"{option} takes name=value, as in {option} lr=1e-4; '{text}' is not that")
        if name in values:
            raise RequestError(f"{option} {name}= was given twice; give one of them")
        values[name] = value
    return values


def read_settings(texts: Iterable[str] | None) -> dict[str, Any]:
    """Return the values of --set, by path."""
    return {name: read_value(text) for name, text in split_assignments(texts or [], "--set").items()}


def read_value(text: str) -> Any:
    """Read a value as TOML; `none` is None, and text that is not TOML is a string."""
    if text.lower() in ("none", "null"):
        return None
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
