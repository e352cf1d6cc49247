"""Numbers to conclusions, without torch: estimates over seeds, exact tests, spread, planning, looks and verdicts.

Names load on first use, since scipy takes half a second to import.
"""

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .arms import compare, compare_corpus, compare_many, compare_summaries, conclude_family
    from .comparison import Comparison
    from .eprocess import e_process
    from .estimate import Estimate, Noise, crossed, crossed_apart, paired_t, welch
    from .exact import Exact, permutation, sign_flip
    from .families import adjust
    from .glossary import MEANINGS, verdict_anchor
    from .looks import look_limits
    from .pairing import Pairing, check_pairing
    from .planning import Plan, detectable_effect, seeds_needed
    from .question import Question
    from .scores import Summary
    from .verdict import Verdict

__all__ = [
    "MEANINGS", "Comparison", "Estimate", "Exact", "Noise", "Pairing", "Plan", "Question", "Summary", "Verdict",
    "adjust", "check_pairing", "compare", "compare_corpus", "compare_many", "compare_summaries", "conclude_family",
    "crossed", "crossed_apart", "detectable_effect", "e_process", "look_limits", "paired_t", "permutation",
    "seeds_needed", "sign_flip", "verdict_anchor", "welch",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__)
