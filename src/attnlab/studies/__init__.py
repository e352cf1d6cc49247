"""Many runs: plan, execution, ledger, answers; and `integrity`, which examines result tables from any source.

Names load on first use, so that a table is examined without torch.
"""

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .answers.analysis import Answer
    from .file.design import Design
    from .ledger.database import Ledger
    from .study import Conclusion, Study

__all__ = ["Answer", "Conclusion", "Design", "Ledger", "Study"]

__getattr__, __dir__ = load_on_first_use(__name__)
