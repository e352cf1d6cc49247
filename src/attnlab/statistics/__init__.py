"""Numbers to conclusions, without torch: estimates over seeds, exact tests, spread, planning, looks and verdicts.

Names load on first use, since scipy takes half a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.lazy import load_on_first_use

if TYPE_CHECKING:
    from .arms import Family, compare, compare_corpus, compare_many, compare_summaries, conclude_family
    from .bootstrap import corpus_estimate
    from .comparison import Comparison
    from .effects import Effects, hedges_g, measure_effects
    from .eprocess import EProcess, e_process
    from .estimate import Estimate, Noise, crossed, crossed_apart, paired_t, welch, welch_from
    from .exact import Exact, permutation, sign_flip
    from .failures import Failures
    from .families import Adjusted, adjust
    from .glossary import MEANINGS, find_word, verdict_anchor
    from .looks import LOOKS, look_limits
    from .pairing import Pairing, check_pairing
    from .planning import Plan, detectable_effect, make_plan, seeds_needed
    from .question import Question
    from .scores import Summary
    from .spread import Spread, measure_spread, sd_interval
    from .stability import Stability, judge_stability
    from .verdict import Evidence, Verdict, decide

HOMES = {
    "Family": "arms", "compare": "arms", "compare_corpus": "arms", "compare_many": "arms",
    "compare_summaries": "arms", "conclude_family": "arms",
    "corpus_estimate": "bootstrap",
    "Comparison": "comparison",
    "Effects": "effects", "hedges_g": "effects", "measure_effects": "effects",
    "EProcess": "eprocess", "e_process": "eprocess",
    "Estimate": "estimate", "Noise": "estimate", "crossed": "estimate", "crossed_apart": "estimate",
    "paired_t": "estimate", "welch": "estimate", "welch_from": "estimate",
    "Exact": "exact", "permutation": "exact", "sign_flip": "exact",
    "Failures": "failures",
    "Adjusted": "families", "adjust": "families",
    "MEANINGS": "glossary", "find_word": "glossary", "verdict_anchor": "glossary",
    "LOOKS": "looks", "look_limits": "looks",
    "Pairing": "pairing", "check_pairing": "pairing",
    "Plan": "planning", "detectable_effect": "planning", "make_plan": "planning", "seeds_needed": "planning",
    "Spread": "spread", "measure_spread": "spread", "sd_interval": "spread",
    "Stability": "stability", "judge_stability": "stability",
    "Summary": "scores",
    "Question": "question",
    "Evidence": "verdict", "Verdict": "verdict", "decide": "verdict",
}  # fmt: skip
"""The file of each public name."""

__all__ = [
    "LOOKS", "MEANINGS", "Adjusted", "Comparison", "EProcess", "Effects", "Estimate", "Evidence", "Exact",
    "Failures", "Family", "Noise", "Pairing", "Plan", "Question", "Spread", "Stability", "Summary", "Verdict",
    "adjust", "check_pairing", "compare", "compare_corpus", "compare_many", "compare_summaries", "conclude_family",
    "corpus_estimate", "crossed", "crossed_apart", "decide", "detectable_effect", "e_process", "find_word",
    "hedges_g", "judge_stability", "look_limits", "make_plan", "measure_effects", "measure_spread", "paired_t",
    "permutation", "sd_interval", "seeds_needed", "sign_flip", "verdict_anchor", "welch", "welch_from",
]  # fmt: skip

__getattr__, __dir__ = load_on_first_use(__name__, HOMES)
