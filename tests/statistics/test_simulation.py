"""How a simulated study is measured, and the command that prints the table."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace

import pytest

from attnlab.statistics.__main__ import main
from attnlab.statistics.cases import list_cases, list_unsound_methods
from attnlab.statistics.simulation import Asks, Look, is_better, is_difference, measure

CASES = list(list_cases())


def test_a_rate_is_the_same_each_time() -> None:
    assert measure(CASES[0], 50) == measure(CASES[0], 50)


def test_another_path_from_scores_to_words_can_be_plugged_in() -> None:
    looks: list[int] = []

    def start() -> Look:
        def look(asks: Asks) -> Mapping[str, str]:
            looks.append(len(next(iter(asks.values())).baseline))
            return dict.fromkeys(asks, "BETTER")

        return look

    assert measure(replace(CASES[0], path=start), 4).share == 1.0
    assert looks == [5] * 4 + [5]


def test_a_look_that_was_not_registered_is_judged_by_the_e_process() -> None:
    (case,) = [case for case in CASES if case.what == "registered with 5, then after every seed"]
    (fresh,) = [case for case in list_unsound_methods() if case.what == "a fresh t test after every seed"]
    assert measure(case, 400).share < measure(fresh, 400).share / 2


@pytest.mark.parametrize(
    ("words", "differs", "better"),
    [
        ("BETTER BY AT LEAST 1", True, True),
        ("WORSE, BELOW YOUR THRESHOLD", True, False),
        ("BETTER AMONG RUNS THAT FINISHED", False, False),
        ("STILL TRAINING, BETTER SO FAR", False, False),
        ("NO MEANINGFUL DIFFERENCE", False, False),
    ],
)
def test_what_counts_as_a_difference(words: str, differs: bool, better: bool) -> None:
    assert (is_difference(words), is_better(words)) == (differs, better)


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1"]) in (0, 1)
    shown = capsys.readouterr().out
    assert "no true difference" in shown
    assert "3 phases × 3 sizes × 3 arms" in shown
    assert "percentile bootstrap" in shown


def test_parts_are_chosen_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["3", "horizons"]) in (0, 1)
    shown = capsys.readouterr().out
    assert "AR(1) curves" in shown
    assert "looks" not in shown


@pytest.mark.parametrize("words", [["many"], ["0"], ["5", "6"], ["-3"]])
def test_wrong_repeats_are_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "takes one number of repeats" in capsys.readouterr().err


def test_statistics_leaves_torch_alone() -> None:
    code = (
        "import sys, attnlab.statistics as room\n"
        "for name in room.__all__:\n"
        "    getattr(room, name)\n"
        "assert room.compare([1.0, 2, 3, 4, 6], [2.0, 3, 4, 5, 9]).verdict\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
