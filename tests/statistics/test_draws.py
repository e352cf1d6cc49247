"""Simulated arms: without an effect the means are equal, and an effect is in SDs of one seed's difference."""

from functools import partial

import numpy as np
import pytest

from attnlab.statistics import draws
from attnlab.statistics.draws import Draw, Seeds
from attnlab.statistics.scores import Numbers

MANY = 20_000
DRAWS: dict[str, tuple[Draw, int]] = {
    "equal": (draws.draw_equal, 1),
    "bad seeds": (draws.draw_bad_seeds, 1),
    "bad variant": (partial(draws.draw_bad_variant, share=0.5), 1),
    "rarely bad variant": (partial(draws.draw_bad_variant, share=0.2), 1),
    "gamma": (partial(draws.draw_gamma, shape=2.0), -1),
    "lognormal": (partial(draws.draw_lognormal, sigma=0.5), -1),
}


def draw_differences(draw: Draw, effect: float) -> Numbers:
    baseline, variant = draw(np.random.default_rng(0), Seeds(MANY), effect)
    differences: Numbers = np.asarray(variant) - np.asarray(baseline)
    return differences


@pytest.mark.parametrize("name", DRAWS)
def test_an_effect_is_in_sds_of_the_difference(name: str) -> None:
    draw, sign = DRAWS[name]
    null, shifted = draw_differences(draw, 0.0), draw_differences(draw, 1.0)
    assert null.mean() / null.std() == pytest.approx(0.0, abs=0.03)
    assert sign * (shifted.mean() - null.mean()) / null.std() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("paired", [True, False])
def test_a_difference_has_an_sd_of_1_and_pairs_are_correlated(paired: bool) -> None:
    baseline, variant = draws.draw_equal(np.random.default_rng(1), Seeds(MANY, paired))
    assert np.std(variant - baseline) == pytest.approx(1.0, abs=0.02)
    assert np.corrcoef(baseline, variant)[0, 1] == pytest.approx(0.5 if paired else 0.0, abs=0.03)


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_the_worst_runs_diverge_and_never_all(share: float) -> None:
    draw, rng = partial(draws.draw_diverging, share=share), np.random.default_rng(2)
    _, variant = draw(rng, Seeds(MANY), 0.0)
    assert np.mean([score is None for score in variant]) == pytest.approx(share, abs=0.01)
    assert min(score for score in variant if score is not None) > -1
    assert all(any(score is not None for score in draw(rng, Seeds(2), 0.0)[1]) for _ in range(200))


def test_documents_can_be_averaged_away() -> None:
    rows = draws.draw_documents(np.random.default_rng(3), Seeds(4), num=5)
    means = draws.draw_documents(np.random.default_rng(3), Seeds(4), num=5, is_averaged=True)
    assert rows[0].shape == (4, 5)
    assert means[1] == pytest.approx(rows[1].mean(axis=1))
