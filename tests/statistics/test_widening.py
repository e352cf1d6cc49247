"""One sentence says which comparisons are widened, by which factor, and why."""

from attnlab import compare
from attnlab.statistics.skewness import FEW_SEEDS_FACTOR
from attnlab.statistics.widening import MAX_NAMED, explain_widening

BASELINE = [70.1, 69.8, 70.6, 70.1, 69.5]
VARIANT = [71.9, 71.4, 72.6, 71.5, 71.7]


def test_the_factor_and_both_p_values_are_named() -> None:
    few = compare(BASELINE, VARIANT, paired=True)
    assert min(few.widened) == FEW_SEEDS_FACTOR
    (sentence,) = explain_widening({"ours": few})
    assert f"plain p = {few.plain_p:.3g}, widened p = {few.p:.3g}" in sentence
    assert "(docs/statistics.md, Skewness): ours " in sentence
    assert few.record()["widened"] == list(few.widened)


def test_it_is_said_once_of_all_and_never_of_plain_ones() -> None:
    few = compare(BASELINE, VARIANT, paired=True)
    plain = compare([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0, 6.0], paired=False)
    assert plain.widened == (1.0, 1.0)
    assert explain_widening({"plain": plain}) == ()
    (sentence,) = explain_widening({"plain": plain} | {f"arm {n}": few for n in range(MAX_NAMED + 2)})
    assert sentence.count("widened p") == MAX_NAMED
    assert sentence.endswith("; and 2 more")
    assert "plain 1" not in sentence


def test_the_side_that_p_does_not_use_is_said_too() -> None:
    found = compare([0.0, 0.1, 0.2, 0.1, 0.0, 0.1, 0.2, 0.1], [0.2, 0.3, 0.3, 0.2, 0.2, 0.3, 0.4, 3.0], paired=False)
    assert found.widened[0] == 1 < found.widened[1]
    (sentence,) = explain_widening({"ours": found})
    assert f"ours {found.widened[1]:.3g} times above, p = {found.p:.3g} as in a plain test" in sentence
