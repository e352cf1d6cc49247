"""`attnlab.compare`: what a user gets of it, from scores to verdict, JSON and print."""

import json
import math

import numpy as np
import pytest

import attnlab
from attnlab.statistics import Question, Summary, compare, compare_corpus, compare_summaries, crossed, look_limits

RNG = np.random.default_rng(11)
BASELINE = RNG.normal(70, 0.5, 10)
VARIANT = BASELINE + RNG.normal(2.0, 0.5, 10)


def test_the_public_surface() -> None:
    found = attnlab.compare(BASELINE, VARIANT, paired=True, smallest=1.0)
    assert found.verdict == "BETTER BY AT LEAST 1"
    assert found.stability == "STABILITY UNKNOWN"
    assert found.difference == pytest.approx(float((VARIANT - BASELINE).mean()))
    assert found.interval[0] < found.difference < found.interval[1]
    assert found.p < 1e-4


@pytest.mark.parametrize("paired", [True, False])
def test_arms_exchanged_turn_the_verdict_around(paired: bool) -> None:
    ahead, behind = compare(BASELINE, VARIANT, paired), compare(VARIANT, BASELINE, paired)
    assert (ahead.verdict, behind.verdict) == ("BETTER BY AT LEAST 1", "WORSE BY AT LEAST 1")
    assert ahead.p == pytest.approx(behind.p)
    assert ahead.difference == pytest.approx(-behind.difference)
    assert compare(VARIANT, BASELINE, paired, higher_is_better=False).verdict == "BETTER BY AT LEAST 1"


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
    assert found.method == "crossed two-way"
    assert compare(baseline, variant, paired=False).method == "crossed two-way, seeds apart"


def test_the_same_scores_are_degenerate() -> None:
    found = compare(BASELINE, BASELINE)
    assert found.verdict == "DEGENERATE"
    assert found.decision.reason == "every seed scores the same in both arms: is the variant in the model at all?"
    assert compare(BASELINE, BASELINE + 1).verdict == "DEGENERATE"
    assert compare([70.0] * 5, [71.0] * 5, paired=False).verdict == "DEGENERATE"
    assert compare(np.ones((5, 7)), np.zeros((5, 7))).verdict == "DEGENERATE"


def test_an_arm_at_its_ceiling_is_said_and_still_compared() -> None:
    found = compare([100.0] * 6, [99.0, 98.5, 97.9, 99.3, 98.2, 98.8])
    assert found.verdict == "WORSE"
    assert "all seeds of the baseline score the same, 100" in found.notes


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_fewer_than_five_seeds_are_too_few_whatever_they_show(n: int) -> None:
    found = compare(BASELINE[:n], BASELINE[:n] + 50)
    assert found.verdict == "TOO FEW SEEDS (n < 5)"
    assert found.difference == pytest.approx(50.0)
    assert str(found)
    json.dumps(found.record(), allow_nan=False)


def test_one_seed_of_examples_is_too_few() -> None:
    assert compare(np.zeros((1, 1000)), np.ones((1, 1000))).verdict == "TOO FEW SEEDS (n < 5)"


def test_five_seeds_cannot_bring_the_exact_p_down_and_it_says_so() -> None:
    assert (
        "with so few seeds the exact test beside it cannot bring its p below 0.0625"
        in compare(BASELINE[:5], VARIANT[:5]).notes
    )


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


def test_declared_looks_ask_for_more() -> None:
    once, first = compare(BASELINE, VARIANT), compare(BASELINE, VARIANT, looks=(5, 10, 15, 20))
    assert first.level == look_limits()[10]
    assert first.interval[0] < once.interval[0]
    assert first.p == once.p


def test_open_ended_runs_have_an_interval_for_all_times() -> None:
    found = compare(BASELINE, VARIANT, looks="open")
    assert found.method == "e-process, normal mixture"
    assert found.verdict.startswith("BETTER")
    assert found.interval[0] < compare(BASELINE, VARIANT).interval[0]


def test_huge_and_tiny_scores_have_the_same_verdict() -> None:
    for scale in (1e-90, 1.0, 1e90):
        for paired in (True, False):
            found = compare(scale * BASELINE, scale * VARIANT, paired, smallest=scale)
            assert found.verdict == f"BETTER BY AT LEAST {scale:g}"


def test_a_record_is_json_and_has_every_seed() -> None:
    record = json.loads(json.dumps(compare(BASELINE, VARIANT).record(), allow_nan=False))
    assert record["verdict"] == "BETTER BY AT LEAST 1"
    assert record["difference"] == pytest.approx(float((VARIANT - BASELINE).mean()))
    assert [row["variant"] for row in record["per_seed"]] == pytest.approx(VARIANT.tolist())
    assert set(record["plan"]) == {"sd", "sd_bound", "more_seeds", "is_decided", "seeds_needed", "detectable"}
    assert set(record["plan"]["seeds_needed"]) == {"0.8", "0.9"}


def test_print_leads_with_the_verdict_and_shows_every_seed() -> None:
    lines = str(compare(dict(zip("abcdefghij", BASELINE, strict=True)), dict(zip("abcdefghij", VARIANT, strict=True))))
    assert lines.startswith("BETTER BY AT LEAST 1: ")
    assert "\nSTABILITY UNKNOWN: " in lines
    for seed in "abcdefghij":
        assert f"\n  {seed}  " in lines


PUBLISHED = [
    (Summary(55.51, 0.32, 5), Summary(59.62, 3.32, 5), 0.0501),
    (Summary(63.15, 0.07, 3), Summary(64.74, 1.47, 3), 0.202),
    (Summary(73.37, 0.12, 3), Summary(73.26, 0.50, 3), 0.743),
]


@pytest.mark.parametrize(("baseline", "variant", "p"), PUBLISHED)
def test_a_published_table(baseline: Summary, variant: Summary, p: float) -> None:
    found = compare_summaries(baseline, variant)
    assert found.p == pytest.approx(p, abs=5e-5 if p < 0.1 else 5e-4)
    assert found.method == "Welch t"
    if baseline.n < 5:
        assert found.verdict == "TOO FEW SEEDS (n < 5)"
    else:
        assert found.verdict == "INCONCLUSIVE (about 10 more seeds)"
    assert all(math.isfinite(seeds) for seeds in found.plan.seeds.values())
    assert found.exact is None
    assert found.per_seed == ()
    json.dumps(found.record(), allow_nan=False)


def test_the_published_table_needs_these_seeds() -> None:
    needed = [compare_summaries(baseline, variant).plan.seeds for baseline, variant, _ in PUBLISHED]
    assert needed == [{0.8: 212, 0.9: 283}, {0.8: 78, 0.9: 104}, {0.8: 11, 0.9: 13}]


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        (Summary(math.nan, 1.0, 5), "mean must be a number"),
        (Summary(1.0, -1.0, 5), "SD must be a number from 0 on"),
        (Summary(1.0, math.inf, 5), "SD must be a number from 0 on"),
        (Summary(1.0, 1.0, 0), "number of seeds must be a whole number from 1 on"),
    ],
)
def test_impossible_summaries_are_refused(summary: Summary, message: str) -> None:
    with pytest.raises(attnlab.errors.StatisticsError, match=message):
        compare_summaries(summary, Summary(1.0, 1.0, 5))


def test_a_summary_of_one_seed_is_too_few() -> None:
    assert compare_summaries(Summary(1.0, math.nan, 1), Summary(2.0, math.nan, 1)).verdict == "TOO FEW SEEDS (n < 5)"


def test_a_metric_of_the_corpus_has_the_same_verdicts() -> None:
    def accuracy(run: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        return 100 * float(run.mean())

    baseline, variant = (RNG.random((6, 300)) < 0.6).astype(float), (RNG.random((6, 300)) < 0.8).astype(float)
    found = compare_corpus(accuracy, baseline, variant, question=Question(smallest=5.0))
    assert found.verdict == "BETTER BY AT LEAST 5"
    assert found.method == "two-way bootstrap"
