"""A short version of `python -m attnlab.statistics`: bounds are kept as far as so few repeats can tell."""

import math

import pytest

from attnlab.statistics.cases import list_cases, list_unsound_methods
from attnlab.statistics.simulation import Case, measure

NUM_REPEATS = 150
CASES = list(list_cases())


def named(case: Case) -> str:
    return f"{case.what}, {case.seeds}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_false_positives_are_within_their_bound(case: Case) -> None:
    assert case.bound is not None
    # So few repeats miss the rate by some; the command, with more, holds the bound itself.
    slack = 3 * math.sqrt(case.bound * (1 - case.bound) / (NUM_REPEATS // case.cost))
    assert measure(case, NUM_REPEATS, with_power=False).share <= case.bound + slack


@pytest.mark.parametrize(
    ("what", "low"),
    [
        ("a fresh t test after every seed", 0.12),
        ("5 documents, averaged away", 0.3),
        ("12 documents, averaged away", 0.2),
        ("20 articles of 25 questions, as 500 questions", 0.2),
        ("percentile bootstrap, paired", 0.15),
        ("10,570 examples of one seed, seed SD 3, t over examples", 0.7),
    ],
)
def test_what_is_refused_finds_differences_where_there_are_none(what: str, low: float) -> None:
    (case,) = [case for case in list_unsound_methods() if case.what == what]
    assert measure(case, 600).share >= low


def test_what_is_there_is_found() -> None:
    powers = {(case.what, case.seeds): measure(case, 400).power for case in CASES if case.what.startswith("equal SD")}
    assert powers
    for (_, num_seeds), power in powers.items():
        assert power is not None
        assert power > (0.4 if num_seeds == "5" else 0.5)


def test_every_part_has_its_simulation() -> None:
    parts = {case.part for case in CASES}
    assert parts >= {"failures", "looks", "families", "documents", "clusters", "skewed", "threshold", "stability"}


def test_power_is_shown_beside_every_null() -> None:
    assert [named(case) for case in CASES if not case.effect] == [
        "true difference half of `smallest`: found, exaggeration not noted, 5"
    ]


def test_every_figure_that_was_measured_before_is_quoted() -> None:
    quoted = {case.before for case in [*CASES, *list_unsound_methods()]}
    assert quoted >= {
        "10–12.5 %", "18.5 %", "8–12 %", "19 %", "34 %", "46–75 %", "12–52 %", "9–18 %", "7 %", "2.6 ×",
    }  # fmt: skip
