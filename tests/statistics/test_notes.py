"""Remarks beside the numbers: each appears if it applies, and not otherwise."""

import numpy as np
import pytest

from attnlab.statistics import compare

RNG = np.random.default_rng(1)
AT_FLOOR = RNG.normal(0.212, 0.01, 8)
LEARNED = RNG.normal(0.80, 0.01, 8)
BASELINE = RNG.normal(70, 0.5, 10)
VARIANT = BASELINE + RNG.normal(2.0, 0.5, 10)


def test_an_arm_at_its_ceiling_is_said_and_still_compared() -> None:
    found = compare([100.0] * 6, [99.0, 98.5, 97.9, 99.3, 98.2, 98.8])
    assert found.verdict == "WORSE"
    assert "all seeds of the baseline score the same, 100" in found.notes
    assert found.notes_by_kind["runs"] == ("all seeds of the baseline score the same, 100",)


def test_one_arm_beyond_the_floor_is_compared_and_the_other_named() -> None:
    found = compare(LEARNED, AT_FLOOR, smallest=0.1, floor=0.2121)
    assert found.verdict == "WORSE BY AT LEAST 0.1"
    assert any("the variant is not beyond the floor, 0.2121, which a trivial strategy" in note for note in found.notes)


def test_a_mean_beyond_the_floor_whose_interval_is_not_is_said() -> None:
    found = compare([0.6, 0.61, 0.62, 0.6, 0.61], [0.2, 0.3, 0.25, 0.15, 0.22], smallest=0.1, floor=0.2121)
    assert (
        "the variant is not beyond the floor, 0.2121, which a trivial strategy scores; the mean of the variant is, its "
        "95 % interval over seeds is not" in found.notes
    )


def test_too_few_seeds_have_a_note() -> None:
    found = compare(AT_FLOOR[:3], AT_FLOOR[3:6], smallest=0.01, floor=0.2121)
    assert found.verdict == "TOO FEW SEEDS (n < 5)"
    assert any("neither arm is beyond the floor" in note for note in found.notes)
    assert any("neither arm is beyond" in n for n in compare([0.1], [0.2], smallest=0.01, floor=0.2121).notes)


def test_what_has_not_learned_is_said_to_be_training_in_a_note() -> None:
    found = compare(AT_FLOOR, AT_FLOOR[::-1], smallest=0.01, floor=0.5, late_gain=0.1)
    assert found.verdict == "NEITHER LEARNED THE TASK"
    assert "still training: in the last fifth of training an arm gained 0.1" in found.notes


def test_exaggeration_is_said_where_power_is_low() -> None:
    rng = np.random.default_rng(0)
    baseline, noise = rng.normal(70, 2, 5), rng.normal(0, 2, 5)
    noise -= noise.mean()
    low = compare(baseline, baseline + noise + 5.0, smallest=1.0)
    assert low.decision.is_difference
    assert low.power_at_smallest < 0.5
    assert any(f"is on average {low.exaggeration:.2g} times the true one" in note for note in low.notes)
    high = compare(baseline, baseline + noise / 20 + 5.0, smallest=1.0)
    assert not any("too large on average" in note for note in high.notes)


@pytest.mark.parametrize(("num_examples", "is_noted"), [(99, True), (100, False)])
def test_few_examples_are_noted(num_examples: int, is_noted: bool) -> None:
    baseline = RNG.normal(size=(5, num_examples))
    notes = compare(baseline, baseline + RNG.normal(0, 1, (5, num_examples))).notes
    assert any("fewer than 100 say little about others" in note for note in notes) == is_noted


def test_few_clusters_are_noted_even_with_many_examples() -> None:
    baseline = RNG.normal(size=(5, 300))
    found = compare(baseline, baseline + RNG.normal(0, 1, (5, 300)), clusters=[number % 20 for number in range(300)])
    assert "20 clusters of 300 examples: fewer than 100 clusters say little about others" in found.notes


def test_open_ended_looks_generalize_to_seeds_alone() -> None:
    baseline = RNG.normal(size=(6, 200))
    found = compare(baseline, baseline + RNG.normal(0, 1, (6, 200)), looks="open")
    assert "with open-ended looks the interval generalizes to other seeds, not to other examples" in found.notes


def test_a_plain_comparison_has_no_notes() -> None:
    assert compare(BASELINE, VARIANT).notes == ()


def test_a_decision_that_only_widening_changes_is_said() -> None:
    baseline, variant = [13.56, 12.83, 15.11, 13.29, 13.39], [15.21, 14.90, 15.59, 15.01, 15.07]
    comparison = compare(baseline, variant, smallest=0.5)
    assert comparison.plain_p < 0.05 <= comparison.p
    (note,) = comparison.notes_by_kind["widening"]
    assert note.startswith("a plain t test has p = 0.00")
    assert note.endswith("7 seeds or more are widened less")
    assert not compare(BASELINE, VARIANT).notes_by_kind["widening"]
    second = str(comparison).splitlines()[1]
    assert second.startswith("Interval and p are wider than those of a plain t test (")
    assert f"plain p = {comparison.plain_p:.3g}, widened p = {comparison.p:.3g}" in second
    assert second.endswith("A plain t test would say that the arms differ.")
    assert str(comparison).count("plain t test") == 2
