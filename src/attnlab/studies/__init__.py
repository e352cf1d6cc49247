"""Many runs: plan, execute, ledger, analysis; and `integrity`, which examines anybody's result table.

Names load on first use: a table is examined without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .analysis import Answer
    from .design import Design
    from .ledger import Ledger
    from .study import Conclusion, Study

HOMES = {"Answer": "analysis", "Conclusion": "study", "Design": "design", "Ledger": "ledger", "Study": "study"}
"""The file of each public name."""

__all__ = ["Answer", "Conclusion", "Design", "Ledger", "Study"]

__getattr__, __dir__ = load_on_first_use(__name__, HOMES)
