"""The simulated studies of `python -m attnlab.statistics`, in the order of docs/statistics.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from . import draws
from .draws import Draw, Seeds
from .simulation import (
    Case,
    average_documents,
    compare_stability,
    decide_looks,
    draw_half,
    is_better,
    look_as_advised,
    look_as_declared,
    look_at_cells,
    look_every_seed,
    look_once,
    percentile_bootstrap,
    t_over_examples,
)  # fmt: skip
from .verdict import AT_LEAST, BETTER

SKEWED = 0.08
"""The most false positives where differences are skewed or examples come in clusters."""
EFFECTS = {5: 1.7, 10: 1.0, 20: 0.66}
"""True differences that a plain t test finds in 80 % of cases, by the number of paired seeds; in SDs."""
GEOMETRIC = np.random.default_rng(0).geometric(1 / 20, 48)
LOGNORMAL = np.maximum(1, np.exp(np.random.default_rng(1).normal(2, 1, 30)).astype(int))


def list_cases() -> Iterator[Case]:
    """Yield every case that has a bound."""
    for part in (
        _list_plain, _list_failures, _list_looks, _list_families, _list_documents, _list_skewed, _list_thresholds,
        _list_stability,
    ):  # fmt: skip
        yield from part()


def _list_plain() -> Iterator[Case]:
    """Yield arms of one number per seed, and of examples, without anything that is hard."""
    for what, draw, bound in (
        ("equal SD", draws.draw_equal, 0.06),
        ("variant's SD 10 ×", draws.draw_wider, 0.06),
        ("a fifth of the seeds scores far below, in both arms", draws.draw_bad_seeds, 0.06),
        ("half of the variant's seeds score far below, equal means", draws.draw_bad_variant, SKEWED),
    ):
        for paired in (True, False):
            for n in (5, 10):
                name = f"{what}, {'paired' if paired else 'unpaired'}"
                effect = EFFECTS[n] if draw in (draws.draw_equal, draws.draw_wider) else 0.0
                yield Case("plain", name, str(n), look_once(draw, Seeds(n, paired)), bound=bound, effect=effect)
    for paired in (True, False):
        name = f"200 examples, {'paired' if paired else 'unpaired'}"
        yield Case("plain", name, "5", look_once(draws.draw_examples, Seeds(5, paired)), effect=EFFECTS[5])


def _list_failures() -> Iterator[Case]:
    """Yield variants whose worst runs diverge: how often they are called BETTER without any reserve."""
    for share in (0.2, 0.3):
        for n in (5, 10, 20):
            finds = look_once(draws.draw_diverging(share), Seeds(n), counts=is_better)
            what = f"the worst {share:.0%} of the variant's runs diverge: plain BETTER"
            yield Case("failures", what, str(n), finds, "10–12.5 %", 0.03, EFFECTS[n])
    finds = look_at_cells(5, Seeds(10), draws.draw_diverging(0.3), is_better)
    what = "the worst 30% diverge in each of 5 arms: any plain BETTER"
    yield Case("failures", what, "10", finds, "10–12.5 %", 0.06, cost=4)


def _list_looks() -> Iterator[Case]:
    """Yield studies that are looked at more than once."""
    every, advised, few = "5 to 20", "5 to 60", 0.66
    yield Case("looks", "declared looks", "5, 10, 15, 20", look_as_declared, "5.0 %", 0.06, few)
    yield Case("looks", "open-ended, after every seed", every, look_every_seed("open"), "18.5 %", 0.05, few, cost=4)
    finds = partial(look_as_advised, looks="open")
    yield Case("looks", "open-ended, as many as advised", advised, finds, "8–12 %", 0.05, few, cost=4)
    what = "registered with 5, then after every seed"
    yield Case("looks", what, every, look_every_seed(), "18.5 %", 0.06, few, cost=4)
    what = "registered with 5, then as many as advised"
    yield Case("looks", what, advised, look_as_advised, "8–12 %", 0.06, few, cost=4)


def _list_families() -> Iterator[Case]:
    """Yield studies of several comparisons: any false verdict; power is that of one of them."""
    for what, num, before, cost in (
        ("2 phases × 2 sizes, 1 arm: any", 4, "19 %", 2),
        ("3 phases × 3 sizes × 3 arms: any", 27, "34 %", 4),
    ):
        for n in (5, 10):
            finds = look_at_cells(num, Seeds(n))
            yield Case("families", what, str(n), finds, before, effect=2 * EFFECTS[n], cost=cost)


def _list_documents() -> Iterator[Case]:
    """Yield figures over few documents, and over questions that come in clusters."""
    for num in (5, 8, 12):
        finds = look_once(draws.draw_documents(num), Seeds(5), scale="log", higher_is_better=False)
        yield Case("documents", f"{num} documents that favour either arm", "5", finds, "46–75 %", effect=1.0)
    sizes: tuple[tuple[str, Any], ...] = (
        ("50 paragraphs of 10", np.full(50, 10)),
        ("20 articles of 25", np.full(20, 25)),
        ("48 articles of 1 to 90", GEOMETRIC),
        ("30 articles of 1 to 69", LOGNORMAL),
    )
    for what, counts in sizes:
        names = np.repeat(np.arange(len(counts)), counts).tolist()
        finds = look_once(draws.draw_clusters(counts), Seeds(5), clusters=names)
        yield Case("clusters", f"{what} questions", "5", finds, "12–52 %", SKEWED, 0.8, cost=2)


def _list_skewed() -> Iterator[Case]:
    """Yield skewed differences of mean 0."""
    shapes: tuple[tuple[str, Draw], ...] = (
        ("gamma, shape 2", draws.draw_skewed("gamma", 2.0)),
        ("exponential", draws.draw_skewed("gamma", 1.0)),
        ("gamma, shape ½", draws.draw_skewed("gamma", 0.5)),
        ("lognormal, σ = ½", draws.draw_skewed("lognormal", 0.5)),
        ("lognormal, σ = 1", draws.draw_skewed("lognormal", 1.0)),
    )
    for what, draw in shapes:
        for n in (5, 10, 20):
            yield Case("skewed", what, str(n), look_once(draw, Seeds(n)), "9–18 %", SKEWED, EFFECTS[n])
    for what, draw in (shapes[1], shapes[-1]):
        finds = look_every_seed("open", draw)
        yield Case("skewed", f"{what}, open-ended, after every seed", "5 to 20", finds, "", SKEWED, 0.66, cost=4)
    for n in (5, 10):
        finds = look_once(draws.draw_skewed("gamma", 1.0), Seeds(n, paired=False))
        yield Case("skewed", "exponential variant, normal baseline, unpaired", str(n), finds, "", SKEWED, EFFECTS[n])


def _list_thresholds() -> Iterator[Case]:
    """Yield what is said of a difference of half the threshold."""
    at_least = re.escape(BETTER + AT_LEAST.format("1"))
    finds = look_once(draw_half, Seeds(5), counts=lambda words: bool(re.match(at_least, words)), smallest=1.0)
    what = "true difference half of `smallest`: BY AT LEAST"
    yield Case("threshold", what, "5", finds, "7 %", 0.025, effect=8.0)


def list_refused() -> Iterator[Case]:
    """Yield what attnlab does not do, on the same scores, and what no analysis of few seeds can guard against."""
    known: dict[str, Any] = {"bound": None, "path": lambda: decide_looks}
    yield Case("refused", "a fresh t test after every seed", "5 to 20", look_every_seed(), "18.5 %", cost=4, **known)
    yield Case(
        "refused", "a fresh t test after as many as advised", "5 to 60", look_as_advised, "8–12 %", cost=4, **known
    )
    finds = look_at_cells(4, Seeds(10), alone=True)
    yield Case("refused", "2 × 2 comparisons, each by itself: any", "10", finds, "19 %", cost=4, **known)
    for num in (5, 12):
        finds = look_once(average_documents(draws.draw_documents(num)), Seeds(5), scale="log", higher_is_better=False)
        yield Case("refused", f"{num} documents, averaged away", "5", finds, "46–75 %", **known)
    finds = look_once(draws.draw_clusters(np.full(20, 25)), Seeds(5))
    yield Case("refused", "20 articles of 25 questions, as 500 questions", "5", finds, "12–52 %", cost=2, **known)
    for n in (5, 20):
        finds = look_once(draws.draw_rarely_bad_variant, Seeds(n))
        what = "a fifth of the variant's seeds scores far below, equal means"
        yield Case("refused", what, str(n), finds, "31.8 %" if n == 5 else "7.2 %", **known)
    for seed_sd in (2.0, 3.0):
        what = f"10,570 examples of one seed, seed SD {seed_sd:g}, t over examples"
        yield Case("refused", what, "1", t_over_examples(seed_sd), bound=None, cost=4)
    for paired in (True, False):
        what = f"percentile bootstrap, {'paired' if paired else 'unpaired'}"
        yield Case("refused", what, "3", percentile_bootstrap(paired), bound=None, cost=4)


def _list_stability() -> Iterator[Case]:
    """Yield the word on stability: LESS or MORE STABLE of arms that are as stable as each other."""
    for what, draw in (
        ("equal SD", draws.draw_equal),
        ("a fifth of the seeds scores far below, in both arms", draws.draw_bad_seeds),
    ):
        for paired in (True, False):
            name = f"stability, {what}, {'paired' if paired else 'unpaired'}"
            bound = 0.06 if draw is draws.draw_equal else SKEWED
            yield Case("stability", name, "10", compare_stability(draw, Seeds(10, paired)), bound=bound, cost=2)
