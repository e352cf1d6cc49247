"""`attnlab.compare` and its relatives: scores, corpora, summaries and families to verdicts."""

import json
import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

import attnlab
from attnlab.errors import StatisticsError
from attnlab.statistics import (
    Comparison,
    Question,
    Summary,
    compare,
    compare_corpus,
    compare_many,
    compare_summaries,
    conclude_family,
)
from attnlab.statistics.question import Looks

RNG = np.random.default_rng(11)
BASELINE = RNG.normal(70, 0.5, 10)
VARIANT = BASELINE + RNG.normal(2.0, 0.5, 10)
PUBLISHED = [
    (Summary(55.51, 0.32, 5), Summary(59.62, 3.32, 5), 0.0501),
    (Summary(63.15, 0.07, 3), Summary(64.74, 1.47, 3), 0.202),
    (Summary(73.37, 0.12, 3), Summary(73.26, 0.50, 3), 0.743),
]


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


@pytest.mark.parametrize(("baseline", "variant", "p"), PUBLISHED)
def test_a_published_table(baseline: Summary, variant: Summary, p: float) -> None:
    found = compare_summaries(baseline, variant)
    assert found.p == pytest.approx(p, abs=5e-5 if p < 0.1 else 5e-4)
    assert found.method == "Welch t"
    if baseline.n < 5:
        assert found.verdict == "TOO FEW SEEDS (n < 5)"
    else:
        assert found.verdict == "INCONCLUSIVE (about 12 more seeds)"
    assert all(math.isfinite(seeds) for seeds in found.plan.seeds.values())
    assert found.exact is None
    assert found.per_seed == ()
    json.dumps(found.record(), allow_nan=False)


def test_the_published_table_needs_these_seeds() -> None:
    needed = [compare_summaries(baseline, variant).plan.seeds for baseline, variant, _ in PUBLISHED]
    assert needed == [{0.8: 212, 0.9: 283}, {0.8: 78, 0.9: 104}, {0.8: 13, 0.9: 15}]


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        (Summary(math.nan, 1.0, 5), "mean must be a finite number"),
        (Summary(1.0, -1.0, 5), "SD must be a finite number of at least 0"),
        (Summary(1.0, math.inf, 5), "SD must be a finite number of at least 0"),
        (Summary(1.0, 1.0, 0), "number of seeds must be an integer of at least 1"),
    ],
)
def test_impossible_summaries_are_refused(summary: Summary, message: str) -> None:
    with pytest.raises(StatisticsError, match=message):
        compare_summaries(summary, Summary(1.0, 1.0, 5))


def test_a_summary_of_one_seed_is_too_few() -> None:
    assert compare_summaries(Summary(1.0, math.nan, 1), Summary(2.0, math.nan, 1)).verdict == "TOO FEW SEEDS (n < 5)"


def test_a_metric_of_the_corpus_has_the_same_verdicts() -> None:
    def accuracy(run: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        return 100 * float(run.mean())

    baseline, variant = (RNG.random((6, 300)) < 0.6).astype(float), (RNG.random((6, 300)) < 0.8).astype(float)
    found = compare_corpus(accuracy, baseline, variant, question=Question(smallest=5.0))
    assert found.verdict == "BETTER BY AT LEAST 5"
    assert found.estimate.method == "two-way bootstrap"


def test_huge_and_tiny_scores_have_the_same_verdict() -> None:
    for scale in (1e-90, 1.0, 1e90):
        for paired in (True, False):
            found = compare(scale * BASELINE, scale * VARIANT, paired, smallest=scale)
            assert found.verdict == f"BETTER BY AT LEAST {scale:g}"


def test_arms_are_one_family() -> None:
    rng = np.random.default_rng(0)
    baseline = rng.normal(size=8)
    arms = {name: baseline + rng.normal(shift, 1, 8) for name, shift in (("none", 0.0), ("some", 1.2), ("much", 4.0))}
    family = compare_many(baseline, arms, question=Question(smallest=0.5))
    assert family["much"].verdict == "BETTER BY AT LEAST 0.5"
    for name, comparison in family.items():
        assert comparison.family is not None
        assert comparison.level == comparison.family.level < 0.05 or name == "none"
        assert comparison.decision.is_difference == (comparison.family.adjusted <= 0.05)
    assert "among 3 (Holm)" in str(family["much"])
    assert family["much"].record()["family"]["method"] == "Holm"


def mixed() -> dict[tuple[str, str], Comparison]:
    rng = np.random.default_rng(2)
    scores = rng.normal(0, 1, (5, 10))
    return {
        ("squad", "much"): compare(scores[0], scores[0] + rng.normal(3, 1, 10)),
        ("squad", "unpaired"): compare(scores[1], scores[2], paired=False),
        ("text", "log"): compare(scores[3] / 10, scores[3] / 10 + rng.normal(-0.5, 0.2, 10), scale="log"),
        ("text", "leaks"): compare(scores[3], scores[4] + 90, obstacle="it leaks"),
        ("probe", "neither"): compare(scores[3], scores[4], floor=5.0),
        ("probe", "few"): compare(scores[3][:4], scores[4][:4] + 90),
    }


def test_a_family_may_be_of_anything() -> None:
    alone = mixed()
    found = conclude_family(alone)
    ps = [one.p if number < 3 else 1.0 for number, one in enumerate(alone.values())]
    passed, adjusted, _, _ = multipletests(ps, alpha=0.05, method="holm")
    assert [one.family.adjusted for one in found.values() if one.family] == pytest.approx(adjusted.tolist())
    assert [one.decision.is_difference for one in found.values()] == passed.tolist()
    assert found["squad", "much"].level == pytest.approx(0.05 / 6)
    assert found["squad", "much"].interval_at(0.05) == pytest.approx(alone["squad", "much"].interval)
    assert found["text", "leaks"].verdict == alone["text", "leaks"].verdict == "NOT COMPARABLE (it leaks)"
    assert found["probe", "neither"].verdict == "NEITHER LEARNED THE TASK"
    assert conclude_family({}) == {}


@pytest.mark.parametrize("looks", [(5, 10, 15, 20), "open", None])
def test_looks_have_their_share_of_a_family(looks: Looks) -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 1, 10)
    alone = {shift: compare(scores, scores + rng.normal(shift, 1, 10), looks=looks) for shift in (0.0, 0.5, 2.5)}
    found = conclude_family(alone)
    for comparison in found.values():
        assert comparison.family is not None
        assert comparison.decision.is_difference == (comparison.family.adjusted <= 0.05)
        low, high = comparison.interval
        assert comparison.decision.is_difference == (not low <= 0 <= high)


def test_a_family_without_variants_is_refused() -> None:
    with pytest.raises(StatisticsError, match="needs the variants' scores by name"):
        compare_many([1.0], {})
