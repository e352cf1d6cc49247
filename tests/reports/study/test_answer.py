"""The page begins with the answer in one sentence; verdicts come in the order of their interest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attnlab.reports.study.answer import _count_outcomes
from attnlab.reports.study.headline import Headline, make_headline
from attnlab.reports.study.results import ArmRow, collect_results
from attnlab.studies.answers.analysis import Answer
from attnlab.studies.answers.study_folder import open_record

from .made import BASE, HIGH, Made

SAME = [value + shift for value, shift in zip(BASE, (0.001, -0.001, 0.0, 0.001, 0.0), strict=True)]
OPEN = [0.30, 0.75, 0.51, 0.2, 0.6]


def make(folder: Path, given: Mapping[str, Sequence[float]], obstacles: Mapping[str, str] | None = None) -> Headline:
    arms = {"dot": "dot | softmax", **{arm: f"dot | softmax | bypass(alpha=0.{n})" for n, arm in enumerate(given, 1)}}
    made = Made(folder, obstacles, arms=arms, has_leaking=True)
    for arm, values in {"dot": BASE, **given}.items():
        made.give(arm, values)
    with open_record(made.done()) as record:
        return make_headline(record, collect_results(record))


def test_an_arm_is_said_to_be_better_and_by_how_much(tmp_path: Path) -> None:
    assert make(tmp_path, {"new": HIGH}).answer == "new is better than dot (accuracy 0.612 against 0.51)."


def test_every_arm_has_a_clause_and_differences_come_first(tmp_path: Path) -> None:
    found = make(tmp_path, {"same": SAME, "leaky": HIGH, "new": HIGH}, {"leaky": "its audit finds a leak"})
    assert "same is not meaningfully different from dot" in found.answer
    assert "leaky is not comparable (its audit finds a leak)" in found.answer
    assert [sentence.arm for sentence in found.verdicts] == ["new", "same"]


def test_of_many_arms_the_numbers_are_given(tmp_path: Path) -> None:
    found = make(tmp_path, {"a": HIGH, "b": HIGH, "c": SAME, "d": OPEN})
    assert found.answer == (
        "Of 4 arms, 2 are better than dot (a, b); 1 is not meaningfully different from dot (c); 1 is not distinguished "
        "from dot (d)."
    )
    assert [sentence.arm for sentence in found.verdicts][-2:] == ["c", "d"]


def test_arms_that_leak_are_named_with_the_reason(tmp_path: Path) -> None:
    leak = "its audit finds a leak"
    found = make(tmp_path, {"a": HIGH, "b": SAME, "x": HIGH, "y": HIGH}, {"x": leak, "y": leak})
    assert found.answer.endswith("; 2 are not comparable, each since its audit finds a leak (x, y).")


def test_what_still_trains_says_so_and_many_names_are_cut() -> None:
    rows = [make_row(f"arm {number}", "STILL TRAINING, WORSE BY AT LEAST 2 % SO FAR") for number in range(8)]
    clauses = _count_outcomes([*rows, make_row("x", "BETTER")], "dot", has_several=False)
    listed = ", ".join(f"arm {number}" for number in range(5))
    assert clauses == [
        "Of 9 arms, 1 is better than dot (x)", f"8 are worse than dot so far, still training ({listed}, 3 more)"
    ]  # fmt: skip
    places = [make_row("a", "WORSE", "one"), make_row("a", "WORSE", "two"), make_row("b", "BETTER", "one")]
    assert _count_outcomes(places, "dot", has_several=True) == [
        "Of 3 comparisons, 1 finds the arm better than dot (b in one, mini)",
        "2 find the arm worse than dot (a in one, mini; a in two, mini)",
    ]


def make_row(arm: str, verdict: str, phase: str = "text") -> ArmRow:
    answer = Answer(phase, "mini", arm, "perplexity", verdict, None, ())
    return ArmRow(phase, "mini", arm, "perplexity", False, {}, {}, {}, answer)


def test_the_lines_of_the_arms_are_on_the_first_screen(tmp_path: Path) -> None:
    assert make(tmp_path, {"new": HIGH}).arms == [
        ("dot", "dot | softmax"), ("new", "dot | softmax | bypass(alpha=0.1)")
    ]  # fmt: skip


def test_before_the_end_there_is_no_answer(tmp_path: Path) -> None:
    assert make(tmp_path, {"new": HIGH[:2]}).answer == "There is no answer yet: 7 of 10 runs have ended."


def test_unknown_stability_is_said_once(tmp_path: Path) -> None:
    found = make(tmp_path, {"a": HIGH, "b": SAME})
    unknown = "STABILITY UNKNOWN: a test of spread needs 8 seeds per arm; there are 5"
    assert [note for note in found.notes if note.startswith("STABILITY")] == [unknown]
