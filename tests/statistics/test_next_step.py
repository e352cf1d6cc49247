"""An undecided comparison is followed by one sentence on what would decide it."""

import numpy as np

from attnlab.statistics import compare
from attnlab.statistics.next_step import explain_next_step

RNG = np.random.default_rng(4)
BASELINE = RNG.normal(70, 1, 6)
OPEN = compare(BASELINE, BASELINE + RNG.normal(0.2, 1.5, 6), smallest=1.0)
WIDE = compare(BASELINE, BASELINE + RNG.normal(0.2, 4.0, 6), smallest=1.0)
FOUND = compare(BASELINE, BASELINE + RNG.normal(9.0, 0.3, 6), smallest=1.0)


def test_one_sentence_names_the_seeds_of_the_comparison_that_needs_most() -> None:
    assert OPEN.verdict.startswith("INCONCLUSIVE")
    assert WIDE.verdict.startswith("INCONCLUSIVE")
    (sentence,) = explain_next_step({"open": OPEN, "wide": WIDE, "found": FOUND})
    assert "INCONCLUSIVE (2 of 3 comparisons)" in sentence
    assert f"{WIDE.plan.seeds[0.8]:.0f} seeds per arm, instead of 6, find a true difference of 1 with 80%" in sentence
    assert "in wide, which needs the most" in sentence


def test_a_difference_below_the_smallest_may_end_as_none() -> None:
    (sentence,) = explain_next_step({"open": OPEN})
    assert ("may also end with NO MEANINGFUL DIFFERENCE" in sentence) == (abs(OPEN.difference) < 1)


def test_too_few_examples_are_said() -> None:
    table = RNG.normal(0, 1, (6, 1)) + RNG.normal(0, 60, (1, 50)) + RNG.normal(0, 1, (6, 50))
    (sentence,) = explain_next_step({"text": compare(np.zeros_like(table), table, smallest=1.0)})
    assert "no practical number of seeds" in sentence
    assert "evaluate more examples" in sentence


def test_what_is_decided_needs_no_step() -> None:
    assert explain_next_step({"found": FOUND}) == ()
