"""`attnlab.compare`: what a user gets of it, from scores to verdict, JSON and print."""

import json

import numpy as np
import pytest

from attnlab.statistics import compare, crossed

RNG = np.random.default_rng(11)
BASELINE = RNG.normal(70, 0.5, 10)
VARIANT = BASELINE + RNG.normal(2.0, 0.5, 10)


def test_what_stands_beside_the_verdict() -> None:
    found = compare(BASELINE, VARIANT)
    assert found.exact is not None
    assert (found.exact.p, found.exact.smallest) == (2 / 1024, 2 / 1024)
    assert found.effects.probability == pytest.approx(1.0)
    assert found.effects.num_ahead == 10
    assert 0 < found.rho <= 1
    assert found.effects.hedges_g > 2
    assert found.spread.assumption == "assuming normality"
    assert found.plan.present == 10
    assert [row[0] for row in found.per_seed] == [str(number) for number in range(1, 11)]


def test_examples_are_crossed_with_seeds() -> None:
    baseline = RNG.normal(size=(6, 80))
    variant = baseline + RNG.normal(0.5, 0.3, (6, 80))
    found = compare(baseline, variant, smallest=0.2)
    known = crossed(variant - baseline)
    assert found.estimate == known
    assert found.interval[0] <= known.interval()[0] < known.interval()[1] <= found.interval[1]
    assert found.estimate.method == "crossed two-way"
    assert compare(baseline, variant, paired=False).estimate.method == "crossed two-way, seeds apart"


def test_the_same_scores_are_degenerate() -> None:
    found = compare(BASELINE, BASELINE)
    assert found.verdict == "DEGENERATE"
    assert found.decision.reason == "every seed scores the same in both arms: is the variant in the model at all?"
    assert compare(BASELINE, BASELINE + 1).verdict == "DEGENERATE"
    assert compare([70.0] * 5, [71.0] * 5, paired=False).verdict == "DEGENERATE"
    assert compare(np.ones((5, 7)), np.zeros((5, 7))).verdict == "DEGENERATE"


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_fewer_than_five_seeds_are_too_few_whatever_they_show(n: int) -> None:
    found = compare(BASELINE[:n], BASELINE[:n] + 50)
    assert found.verdict == "TOO FEW SEEDS (n < 5)"
    assert found.difference == pytest.approx(50.0)
    assert str(found)
    json.dumps(found.record(), allow_nan=False)


def test_one_seed_of_examples_is_too_few() -> None:
    assert compare(np.zeros((1, 1000)), np.ones((1, 1000))).verdict == "TOO FEW SEEDS (n < 5)"


def test_an_obstacle_is_the_verdict() -> None:
    assert compare(BASELINE, VARIANT, obstacle="the variant leaks").verdict == "NOT COMPARABLE (the variant leaks)"


def test_failed_runs_are_counted_and_never_dropped() -> None:
    found = compare(BASELINE, [*VARIANT[:9], None])
    assert found.verdict == "BETTER BY AT LEAST 1 AMONG RUNS THAT FINISHED"
    assert "1 of 10 runs of the variant have no score" in found.notes
    assert found.per_seed[-1] == ("10", float(BASELINE[-1]), None)
    assert found.record()["failed"] == {
        "baseline": 0,
        "variant": 1,
        "p": pytest.approx(1.0),
        # Wilcoxon's: ranks 1 to 9 above 0 and rank 10 below; 43 of 512 sums are as extreme.
        "worst_p": pytest.approx(43 / 512),
    }


def test_arms_that_fail_at_other_rates_are_not_comparable() -> None:
    found = compare(BASELINE, [*VARIANT[:5], *[None] * 5])
    assert found.verdict == "NOT COMPARABLE (0 of 10 runs of the baseline and 5 of 10 of the variant failed)"
    assert found.stability == "LESS STABLE"


def test_a_lower_loss_is_ahead() -> None:
    losses = [3.1, 3.2, 3.15, 3.12, 3.11, 3.18, 3.14, 3.13]
    lower = [loss - 0.1 - number / 1000 for number, loss in enumerate(losses)]
    found = compare(losses, lower, paired=True, smallest=0.05, higher_is_better=False)
    assert found.verdict.startswith("BETTER")
    assert "variant ahead in 8 of 8 pairs" in str(found)
    assert "ahead in 0 of 8" in str(compare(losses, lower, paired=True, smallest=0.05))


def test_a_plan_never_needs_fewer_seeds_than_a_verdict() -> None:
    found = compare([1.0, 1.1, 0.9], [1.02, 1.1, 0.95], paired=False, smallest=1)
    assert min(found.plan.seeds.values()) == 5
    assert "a difference of 1 needs 5 (80% power)" in str(found)
