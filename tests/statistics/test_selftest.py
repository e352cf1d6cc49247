"""Arms that do not differ, through the real verdict: a short version of `python -m attnlab.statistics`."""

import math
import subprocess
import sys

import pytest

from attnlab.statistics.__main__ import main
from attnlab.statistics.selftest import Case, measure, refused, stabilities, verdicts

NUM_REPEATS = 300
JUDGED = [case for case in [*verdicts(), *stabilities()] if "every seed" not in case.how]


def named(case: Case) -> str:
    return f"{case.what}, {case.how}, {case.seeds}"


@pytest.mark.parametrize("case", JUDGED, ids=named)
def test_nothing_is_found_no_more_often_than_said(case: Case) -> None:
    assert case.bound is not None
    # So few repeats miss the rate by some; the command, with more, holds the bound itself.
    slack = 2 * math.sqrt(case.bound * (1 - case.bound) / NUM_REPEATS)
    assert measure(case, NUM_REPEATS).share <= case.bound + slack


def test_looking_after_every_seed_is_safe_where_it_is_said_to_be() -> None:
    (case,) = [case for case in verdicts() if "every seed" in case.how]
    assert measure(case, 150).is_kept


@pytest.mark.parametrize(
    ("how", "low", "high"),
    [
        ("percentile bootstrap", 0.18, 0.29),
        ("t over examples alone", 0.74, 0.90),
        ("paired t after every seed", 0.19, 0.27),
    ],
)
def test_what_is_refused_finds_differences_in_nothing(how: str, low: float, high: float) -> None:
    cases = [case for case in refused() if case.how.startswith(how)]
    assert cases
    for case in cases:
        assert low <= measure(case, 800).share <= high, named(case)


def test_a_rate_is_the_same_each_time() -> None:
    case = next(verdicts())
    assert measure(case, 50).share == measure(case, 50).share


def test_the_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2"]) in (0, 1)
    shown = capsys.readouterr().out
    assert "arms that do not differ" in shown
    assert "a fifth of the seeds fails in both arms" in shown
    assert "percentile bootstrap" in shown


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
