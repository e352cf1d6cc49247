"""Many runs: plan, execute, ledger, analysis; and `integrity`, which examines anybody's result table.

Names load on first use: a table is examined without torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers.analysis import Answer
    from .file.design import Design
    from .ledger.database import Ledger
    from .study import Conclusion, Study

HOMES = {
    "Answer": "answers.analysis",
    "Conclusion": "study",
    "Design": "file.design",
    "Ledger": "ledger.database",
    "Study": "study",
}
"""The file of each public name."""

__all__ = ["Answer", "Conclusion", "Design", "Ledger", "Study"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'attnlab.studies' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *HOMES])
