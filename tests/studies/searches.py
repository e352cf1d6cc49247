"""A study with a search, small enough to train in this process."""

from __future__ import annotations

from typing import Any

from attnlab.studies.study import Study

from .samples import content

TUNE = "embedded:mqar?vocab=32&length=24&pairs=4&examples=20&seed=3"
ARMS = {"dot": "dot | softmax", "cosine": "cosine | softmax"}
RATES = [1e-3, 1e-2]


def searched(**changes: Any) -> dict[str, Any]:
    """Return a study of two arms whose learning rates are searched, with changes by their paths."""
    search = {"over": {"optimizer.lr": RATES}}
    made = {**content(), "arms": dict(ARMS), "search": search}
    made["data"]["recall"]["tune"] = TUNE
    for name, value in changes.items():
        made["search"] = {**made["search"], name: value}
    return made


def search_study(**changes: Any) -> Study:
    """Return that study."""
    return Study.of(searched(**changes))
