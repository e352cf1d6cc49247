"""The simulated studies of `python -m attnlab.statistics`, in the order of docs/statistics.md."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from . import draws, simulation
from .draws import Seeds
from .joint_cases import list_joint_cases, list_unsound_joint_methods
from .simulation import Case, is_better, look_as_advised, look_at_cells, look_once, look_repeatedly
from .verdict import AT_LEAST, BETTER

SKEWED = 0.08
"""The bound for skewed differences and clustered examples."""
EFFECTS = {5: 1.7, 10: 1.0, 20: 0.66}
"""True differences that a plain t test finds in 80 % of cases, by the number of paired seeds; in SDs."""
PAIRED = {True: "paired", False: "unpaired"}
SKEWED_DRAWS = {
    "gamma, shape 2": partial(draws.draw_gamma, shape=2.0),
    "exponential": partial(draws.draw_gamma, shape=1.0),
    "gamma, shape ½": partial(draws.draw_gamma, shape=0.5),
    "lognormal, σ = ½": partial(draws.draw_lognormal, sigma=0.5),
    "lognormal, σ = 1": partial(draws.draw_lognormal, sigma=1.0),
}
CLUSTER_SIZES = {
    "50 paragraphs of 10 questions": np.full(50, 10),
    "20 articles of 25 questions": np.full(20, 25),
    "48 articles of 1 to 90 questions": np.random.default_rng(0).geometric(1 / 20, 48),
    "30 articles of 1 to 69 questions": np.maximum(1, np.exp(np.random.default_rng(1).normal(2, 1, 30)).astype(int)),
}
EVERY_SEED = range(5, 21)


def list_cases() -> Iterator[Case]:
    """Yield every case that has a bound."""
    yield from _list_plain()
    yield from _list_failures()
    yield from _list_looks()
    yield from _list_families()
    yield from _list_examples()
    yield from _list_skewed()
    at_least = re.compile(re.escape(BETTER + AT_LEAST.format("1")))
    finds = look_once(draws.draw_half, Seeds(5), lambda words: at_least.match(words) is not None, smallest=1.0)
    yield Case("threshold", "true difference half of `smallest`: BY AT LEAST", "5", finds, "7 %", 0.025, effect=8.0)
    what = "true difference half of `smallest`: found, exaggeration not noted"
    yield Case("threshold", what, "5", simulation.find_without_exaggeration_note, "2.6 ×", 0.025)
    yield from _list_stability()
    yield from list_joint_cases()


def _list_plain() -> Iterator[Case]:
    bad_variant = partial(draws.draw_bad_variant, share=0.5)
    for what, draw, bound in (
        ("equal SD", draws.draw_equal, 0.06),
        ("variant's SD 10 ×", draws.draw_wider, 0.06),
        ("a fifth of the seeds scores far below, in both arms", draws.draw_bad_seeds, 0.06),
        ("half of the variant's seeds score far below, equal means", bad_variant, SKEWED),
    ):
        for paired, n in product((True, False), (5, 10)):
            finds = look_once(draw, Seeds(n, paired))
            yield Case("plain", f"{what}, {PAIRED[paired]}", str(n), finds, bound=bound, effect=EFFECTS[n])
    for paired in (True, False):
        finds = look_once(draws.draw_examples, Seeds(5, paired))
        yield Case("plain", f"200 examples, {PAIRED[paired]}", "5", finds, effect=EFFECTS[5])


def _list_failures() -> Iterator[Case]:
    for share, n in product((0.2, 0.3), (5, 10, 20)):
        finds = look_once(partial(draws.draw_diverging, share=share), Seeds(n), is_better)
        what = f"the worst {share:.0%} of the variant's runs diverge: plain BETTER"
        yield Case("failures", what, str(n), finds, "10–12.5 %", 0.03, EFFECTS[n])
    finds = look_at_cells(5, Seeds(10), partial(draws.draw_diverging, share=0.3), is_better)
    what = "the worst 30% diverge in each of 5 arms: any plain BETTER"
    yield Case("failures", what, "10", finds, "10–12.5 %", 0.06, 2 * EFFECTS[10], cost=4)


def _list_looks() -> Iterator[Case]:
    every, advised, effect = "5 to 20", "5 to 60", EFFECTS[20]
    yield Case("looks", "declared looks", "5, 10, 15, 20", simulation.look_as_declared, "5.0 %", 0.06, effect)
    finds = look_repeatedly(EVERY_SEED, looks="open")
    yield Case("looks", "open-ended, after every seed", every, finds, "18.5 %", 0.05, effect, cost=4)
    finds = partial(look_as_advised, looks="open")
    yield Case("looks", "open-ended, as many as advised", advised, finds, "8–12 %", 0.05, effect, cost=4)
    what = "registered with 5, then after every seed"
    yield Case("looks", what, every, look_repeatedly(EVERY_SEED), "18.5 %", 0.06, effect, cost=4)
    what = "registered with 5, then as many as advised"
    yield Case("looks", what, advised, look_as_advised, "8–12 %", 0.06, effect, cost=4)


def _list_families() -> Iterator[Case]:
    for what, num, before, cost in (
        ("2 phases × 2 sizes, 1 arm: any", 4, "19 %", 2),
        ("3 phases × 3 sizes × 3 arms: any", 27, "34 %", 4),
    ):
        for n in (5, 10):
            yield Case("families", what, str(n), look_at_cells(num, Seeds(n)), before, effect=2 * EFFECTS[n], cost=cost)


def _list_examples() -> Iterator[Case]:
    for num in (5, 8, 12):
        finds = look_once(partial(draws.draw_documents, num=num), Seeds(5), scale="log", higher_is_better=False)
        yield Case("documents", f"{num} documents that favour either arm", "5", finds, "46–75 %", effect=1.0)
    for what, sizes in CLUSTER_SIZES.items():
        names = np.repeat(np.arange(len(sizes)), sizes).tolist()
        finds = look_once(partial(draws.draw_clusters, sizes=sizes), Seeds(5), clusters=names)
        yield Case("clusters", what, "5", finds, "12–52 %", SKEWED, 0.8, cost=2)


def _list_skewed() -> Iterator[Case]:
    for (what, draw), n in product(SKEWED_DRAWS.items(), (5, 10, 20)):
        yield Case("skewed", what, str(n), look_once(draw, Seeds(n)), "9–18 %", SKEWED, EFFECTS[n])
    for what in ("exponential", "lognormal, σ = 1"):
        finds = look_repeatedly(EVERY_SEED, SKEWED_DRAWS[what], looks="open")
        yield Case("skewed", f"{what}, open-ended, after every seed", "5 to 20", finds, "", SKEWED, 0.66, cost=4)
    for n in (5, 10):
        finds = look_once(SKEWED_DRAWS["exponential"], Seeds(n, paired=False))
        yield Case("skewed", "exponential variant, normal baseline, unpaired", str(n), finds, "", SKEWED, EFFECTS[n])


def _list_stability() -> Iterator[Case]:
    for what, draw, bound in (
        ("equal SD", draws.draw_equal, 0.06),
        ("a fifth of the seeds scores far below, in both arms", draws.draw_bad_seeds, SKEWED),
    ):
        for paired in (True, False):
            finds = partial(simulation.compare_stability, draw=draw, seeds=Seeds(10, paired))
            yield Case("stability", f"stability, {what}, {PAIRED[paired]}", "10", finds, "", bound, 4.0, cost=2)


def list_unsound_methods() -> Iterator[Case]:
    """Yield what attnlab does not do, on the same scores, and a limit of any analysis of few seeds."""
    case = partial(Case, "refused", bound=None, path=lambda: simulation.decide_looks)
    yield case("a fresh t test after every seed", "5 to 20", look_repeatedly(EVERY_SEED), "18.5 %", cost=4)
    yield case("a fresh t test after as many as advised", "5 to 60", look_as_advised, "8–12 %", cost=4)
    finds = look_at_cells(4, Seeds(10), alone=True)
    yield case("2 × 2 comparisons, each by itself: any", "10", finds, "19 %", cost=4)
    for num in (5, 12):
        draw = partial(draws.draw_documents, num=num, is_averaged=True)
        finds = look_once(draw, Seeds(5), scale="log", higher_is_better=False)
        yield case(f"{num} documents, averaged away", "5", finds, "46–75 %")
    finds = look_once(partial(draws.draw_clusters, sizes=np.full(20, 25)), Seeds(5))
    yield case("20 articles of 25 questions, as 500 questions", "5", finds, "12–52 %", cost=2)
    for n, before in ((5, "31.8 %"), (20, "7.2 %")):
        finds = look_once(partial(draws.draw_bad_variant, share=0.2), Seeds(n))
        yield case("a fifth of the variant's seeds scores far below, equal means", str(n), finds, before)
    for seed_sd in (2.0, 3.0):
        what = f"10,570 examples of one seed, seed SD {seed_sd:g}, t over examples"
        yield case(what, "1", partial(simulation.t_over_examples, seed_sd=seed_sd), cost=4)
    for paired in (True, False):
        what = f"percentile bootstrap, {PAIRED[paired]}"
        yield case(what, "3", partial(simulation.percentile_bootstrap, paired=paired), cost=4)
    yield from list_unsound_joint_methods()
