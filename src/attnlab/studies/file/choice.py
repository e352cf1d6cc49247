"""Which arms and sizes of a file are taken: how a budget leaves some out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def chosen(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study as plain data, which may hold anything, without the arms and sizes that are not taken."""
    found = dict(content)
    for what in ("arms", "sizes"):
        wanted, there = found.get(f"only_{what}"), found.get(what)
        if isinstance(wanted, list) and isinstance(there, dict):
            found[what] = {name: there[name] for name in there if name in wanted}
    arms, sizes, before = found.get("arms"), found.get("sizes"), content.get("sizes")
    if isinstance(arms, dict) and isinstance(sizes, dict) and isinstance(before, dict):
        found["arms"] = {name: fitted(arm, set(before) - set(sizes)) for name, arm in arms.items()}
    return found


def fitted(arm: Any, left_out: set[str]) -> Any:
    """Return an arm without lines for sizes that were left out."""
    own = arm.get("by_size") if isinstance(arm, dict) else None
    if not isinstance(own, dict):
        return arm
    return {**arm, "by_size": {size: line for size, line in own.items() if size not in left_out}}
