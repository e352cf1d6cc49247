"""The verdict's words, exactly, and what each of them rests on."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.statistics import Question, compare
from attnlab.statistics.question import choose_late_gain
from attnlab.statistics.verdict import Evidence, decide

WORDS = {
    "BETTER",
    "WORSE",
    "BETTER, BELOW YOUR THRESHOLD",
    "WORSE, BELOW YOUR THRESHOLD",
    "BETTER BY AT LEAST {}",
    "WORSE BY AT LEAST {}",
    "NO MEANINGFUL DIFFERENCE",
    "TOO FEW SEEDS (n < 5)",
    "DEGENERATE",
}


def evidence(low: float, high: float, **other: Any) -> Evidence:
    return replace(Evidence(5, (low + high) / 2, (low, high), lambda: 7.0), **other)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.5, 2.5, "BETTER"),
        (-2.5, -0.5, "WORSE"),
        (1.0, 2.5, "BETTER BY AT LEAST 1"),
        (-2.5, -1.5, "WORSE BY AT LEAST 1"),
        (0.1, 1.7, "BETTER, BELOW YOUR THRESHOLD"),
        (0.1, 0.5, "BETTER, BELOW YOUR THRESHOLD"),
        (-0.5, -0.1, "WORSE, BELOW YOUR THRESHOLD"),
        (-0.5, 0.5, "NO MEANINGFUL DIFFERENCE"),
        (-0.5, 1.5, "INCONCLUSIVE (about 7 more seeds)"),
        (-2.0, 2.0, "INCONCLUSIVE (about 7 more seeds)"),
        (-math.inf, math.inf, "INCONCLUSIVE (about 7 more seeds)"),
    ],
)
def test_the_interval_decides(low: float, high: float, words: str) -> None:
    given_difference = 0.0 if math.isinf(low) else (low + high) / 2
    assert decide(evidence(low, high, difference=given_difference), Question()).words == words


def test_the_reason_tells_whether_the_interval_reaches_the_threshold() -> None:
    assert decide(evidence(0.1, 1.7), Question()).reason.endswith("though the interval includes larger ones")
    assert decide(evidence(0.1, 0.5), Question()).reason.endswith("and so is the whole interval")


def test_where_less_is_better_the_words_turn() -> None:
    question = Question(higher_is_better=False)
    assert decide(evidence(0.5, 2.5), question).words == "WORSE"
    assert decide(evidence(-0.5, -0.1), question).words == "BETTER, BELOW YOUR THRESHOLD"


def test_what_comes_first() -> None:
    few = evidence(0.5, 2.5, num_seeds=4, degenerate="no spread")
    assert decide(few, Question(obstacle="the variant leaks")).words == "NOT COMPARABLE (the variant leaks)"
    assert decide(few, Question()).words == "TOO FEW SEEDS (n < 5)"
    assert decide(evidence(1.0, 1.0, degenerate="no spread"), Question()).words == "DEGENERATE"


def test_where_no_number_of_seeds_will_do_it_says_so() -> None:
    verdict = decide(evidence(-2.0, 2.0, more_seeds=lambda: math.inf), Question())
    assert verdict.words == "INCONCLUSIVE (about ∞ more seeds)"
    assert "there are too few examples" in verdict.reason


def test_one_seed_is_singular() -> None:
    verdict = decide(evidence(-2.0, 2.0, more_seeds=lambda: 1.0), Question())
    assert verdict.words == "INCONCLUSIVE (about 1 more seed)"


def test_after_the_last_look_more_seeds_are_another_study() -> None:
    verdict = decide(evidence(-2.0, 2.0, num_seeds=20), Question(looks=(5, 10, 15, 20)))
    assert "the last declared look" in verdict.reason


@given(
    low=st.floats(-10, 10),
    width=st.floats(0, 10),
    smallest=st.floats(0.01, 5),
    num_seeds=st.integers(1, 30),
    higher=st.booleans(),
)
def test_no_other_words(low: float, width: float, smallest: float, num_seeds: int, higher: bool) -> None:
    found = decide(evidence(low, low + width, num_seeds=num_seeds), Question(smallest, higher))
    assert found.words in {word.format(f"{smallest:g}") for word in WORDS} | {"INCONCLUSIVE (about 7 more seeds)"}
    assert found.reason


RNG = np.random.default_rng(1)
LEARNED = RNG.normal(0.80, 0.01, 8)


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        (0.05, "STILL TRAINING, BETTER BY AT LEAST 0.01 SO FAR"),
        (-0.05, "STILL TRAINING, WORSE BY AT LEAST 0.01 SO FAR"),
        (0.004, "STILL TRAINING, BETTER SO FAR, BELOW YOUR THRESHOLD"),
        (0.0, "STILL TRAINING, NO MEANINGFUL DIFFERENCE SO FAR"),
    ],
)
def test_still_training(shift: float, words: str) -> None:
    noise = RNG.normal(0, 0.001, 8)
    found = compare(LEARNED, LEARNED + shift + noise - noise.mean(), smallest=0.01, late_gain=0.006)
    assert found.verdict == words
    assert found.decision.outcome == "STILL TRAINING"
    same = compare(LEARNED, LEARNED + shift + noise - noise.mean(), smallest=0.01, late_gain=0.005)
    assert not same.verdict.startswith("STILL TRAINING")


def test_it_is_said_which_arm_was_still_training() -> None:
    scores = LEARNED + RNG.normal(0, 0.1, 8)
    reason = compare(LEARNED, scores, smallest=0.01, late_gain=0.9, late_gain_of="slow").decision.reason
    assert reason.startswith("in the last fifth of training 'slow' gained 0.9, more than half of 0.01; so far, ")
    assert choose_late_gain({"dot": 0.1, "slow": 0.9, "lost": None}) == (0.9, "slow")
    assert choose_late_gain({"dot": None}) == (None, "")


def test_still_training_and_inconclusive() -> None:
    found = compare(LEARNED, LEARNED + RNG.normal(0, 0.1, 8), smallest=0.01, late_gain=1.0)
    assert found.verdict == "STILL TRAINING, INCONCLUSIVE SO FAR"
