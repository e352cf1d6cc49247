"""Examples that belong together become one, and the figure stays what it was."""

import numpy as np
import pytest

from attnlab.errors import StatisticsError
from attnlab.statistics import compare, crossed
from attnlab.statistics.clusters import correct_for_sizes, merge_clusters
from attnlab.statistics.scores import read_arm

RNG = np.random.default_rng(0)
NAMES = [f"article {number}" for number in RNG.integers(0, 9, 60)]


def test_the_figure_stays_what_it_was() -> None:
    arm = read_arm("variant", RNG.normal(size=(5, 60)))
    merged = merge_clusters(arm, NAMES)
    assert merged.per_seed == pytest.approx(arm.per_seed)
    assert (merged.num_examples, merged.num_clusters, merged.values.shape) == (60, 9, (5, 9))


def test_clusters_of_one_size_are_their_means() -> None:
    baseline, variant = RNG.normal(size=(2, 6, 40))
    found = compare(baseline, variant, clusters=np.repeat(np.arange(10), 4).tolist(), smallest=0.1)
    means = (variant - baseline).reshape(6, 10, 4).mean(axis=2)
    assert found.estimate.se == pytest.approx(crossed(means).se)
    assert found.difference == pytest.approx(float((variant - baseline).mean()))


def test_every_example_on_its_own_is_no_cluster() -> None:
    baseline, variant = RNG.normal(size=(2, 6, 40))
    alone, named = compare(baseline, variant), compare(baseline, variant, clusters=list(range(40)))
    assert (named.estimate.se, named.estimate.df) == pytest.approx((alone.estimate.se, alone.estimate.df))
    assert named.difference == pytest.approx(alone.difference)


def test_large_clusters_count_for_several() -> None:
    """By hand for sizes 2, 1 and 1: shares ½, ¼ and ¼ of the effects."""
    inflation, df = correct_for_sizes(np.array([2.0, 1.0, 1.0]))
    residual = np.array([[0.25, -0.125, -0.125], [-0.125, 0.1875, -0.0625], [-0.125, -0.0625, 0.1875]])
    eigenvalues = np.linalg.eigvalsh(residual.T @ residual)
    assert df == pytest.approx(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())
    assert inflation == pytest.approx(np.sqrt(0.375 / (1.5 * eigenvalues.sum())))
    assert df < 2
    assert correct_for_sizes(np.full(7, 4.0)) == pytest.approx((1.0, 6.0))


def test_the_size_of_a_cluster_is_no_spread() -> None:
    """A seed that is 3 better everywhere leaves nothing to the clusters, whatever their sizes."""
    by_seed = np.array([[1.0], [2.0], [3.0], [2.0], [2.0]])
    found = compare(np.zeros((5, 60)), by_seed * np.ones((5, 60)), clusters=NAMES)
    assert found.estimate.se == pytest.approx(float(by_seed.std(ddof=1)) / np.sqrt(5))


def test_one_cluster_leaves_the_seeds() -> None:
    baseline, variant = RNG.normal(size=(2, 6, 40))
    found = compare(baseline, variant, clusters=["all"] * 40)
    assert (found.estimate.method, found.data.num_clusters) == ("paired t", 1)


def test_few_clusters_are_said() -> None:
    baseline, variant = RNG.normal(size=(2, 6, 200))
    assert not any("say little" in note for note in compare(baseline, variant).notes)
    assert any("9 clusters of 60 examples" in n for n in compare(*RNG.normal(size=(2, 6, 60)), clusters=NAMES).notes)
    assert any("40 examples or documents" in n for n in compare(*RNG.normal(size=(2, 6, 40))).notes)


def test_what_names_no_clusters_is_refused() -> None:
    with pytest.raises(StatisticsError, match="one number per seed"):
        compare([1.0, 2.0], [1.0, 2.0], clusters=["a", "b"])
    with pytest.raises(StatisticsError, match="got 59 names for 60 examples"):
        compare(np.zeros((5, 60)), np.ones((5, 60)), clusters=NAMES[:59])
