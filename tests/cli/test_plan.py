"""`attnlab plan` takes the spread from a pilot, never the difference, and says what it cannot know."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from attnlab.cli import main
from attnlab.statistics import Noise, look_limits
from attnlab.statistics.power import compute_power

from ..studies.folders import BETTER, DOT, two_arms, write_folder
from ..studies.samples import STUDY, content

OPEN = (0.50, 0.56, 0.48, 0.52, 0.53)
"""Accuracies that settle nothing beside DOT's."""


@pytest.fixture(scope="module")
def pilot(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_folder(tmp_path_factory.mktemp("pilot") / "study", {"dot": DOT, "better": OPEN}))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "study.toml"
    path.write_text(STUDY, encoding="utf-8")
    return str(path)


def prospect(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the first prospect that a plan prints."""
    assert main(["plan", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["prospects"][0]
    return found


def needed(effect: float, power: float, level: float = 0.05) -> int:
    """Return the fewest pairs whose verdict finds an effect with this power."""
    return next(n for n in range(5, 1000) if compute_power(Noise(1.0, math.inf), n, effect, level) >= power)


def test_a_folder_is_its_own_pilot(pilot: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = prospect([pilot], capsys)
    differences = np.subtract(OPEN, DOT)
    bound = differences.std(ddof=1) * math.sqrt(4 / stats.chi2.ppf(0.2, 4))
    assert found["sd"] == pytest.approx(differences.std(ddof=1))
    assert found["sd_bound"] == pytest.approx(bound)
    assert (found["num_pilot"], found["num_declared"], found["smallest"]) == (5, 5, 0.02)
    for power in (0.8, 0.9):
        assert found["seeds"][f"{power:g}"] == needed(0.02 / bound, power)
        effect = found["detectable"][f"{power:g}"] / bound
        assert compute_power(Noise(1.0, math.inf), 5, effect) == pytest.approx(power, abs=1e-4)


def test_what_a_study_has_decided_needs_no_more_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER}))
    found = prospect([folder], capsys)
    assert found["obstacle"] == "decided: BETTER BY AT LEAST 0.02 AT SHARED SETTINGS; no more seeds are needed"
    assert found["seeds"] == {}


def test_a_given_spread_is_taken_as_it_is_and_alpha_is_shared(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = prospect([file, "--spread", "0.03", "--power", "0.85", "--alpha", "0.1"], capsys)
    assert (found["sd"], found["sd_bound"], found["level"]) == (0.03, 0.03, 0.05)
    assert found["seeds"] == {"0.85": needed(0.02 / 0.03, 0.85)}


def test_a_pilot_of_a_file_gives_the_spread_and_the_file_the_rest(
    pilot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.toml"
    text = STUDY.replace('bypass = "dot | softmax | bypass(alpha=0.5)"', 'better = "cosine | softmax"')
    path.write_text(text.replace("smallest = 0.02", "smallest = 0.05"), encoding="utf-8")
    found = prospect([str(path), "--pilot", pilot, "--set", "seeds=[1, 2, 3]"], capsys)
    assert (found["arm"], found["smallest"], found["num_declared"], found["num_pilot"]) == ("better", 0.05, 3, 5)
    assert main(["plan", str(path), "--pilot", pilot]) == 0
    assert "recall, tiny, slow: the pilot has no arm 'slow'" in capsys.readouterr().out


def test_more_seeds_take_what_the_pilots_runs_took(pilot: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = prospect([pilot], capsys)
    assert main(["plan", pilot]) == 0
    shown = capsys.readouterr().out
    assert max(found["seeds"].values()) > 5
    for power, seeds in found["seeds"].items():
        more = int(seeds) - 5
        line = f"{float(power):.0%}: {int(seeds)} seeds, {more} more than the study has: {2 * more} runs, about"
        assert line in shown or more <= 0
    assert main(["plan", pilot, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a_seed"] == {"runs": 2, "seconds": 120.0}


def test_a_pilot_that_goes_on_is_taken_as_far_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write_folder(tmp_path / "study", {"dot": DOT, "better": [0.6, None, 0.6]}))
    found = prospect([folder], capsys)
    assert found["num_pilot"] == 2
    assert found["sd"] == pytest.approx(np.std([0.1, 0.09], ddof=1))
    assert main(["plan", folder]) == 0
    assert "BETTER" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dot": [0.5], "better": [0.6]}, "1 seed has ended in both arms; a spread needs at least 2, better 3 to 5"),
        ({}, "0 seeds have ended in both arms; a spread needs at least 2, better 3 to 5"),
        ({"dot": [0.5, 0.5], "better": [0.75, 0.75]}, "every pair of seeds differs by the same"),
    ],
    ids=["one", "none", "same"],
)
def test_what_a_pilot_lacks_is_said(
    given: dict[str, list[float]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(write_folder(tmp_path / "study", given))]) == 0
    shown = capsys.readouterr().out
    assert f"recall, tiny, better: {said}" in shown
    assert "more than the study has" not in shown


def test_without_a_spread_a_pilot_is_offered(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", file]) == 0
    shown = capsys.readouterr().out
    assert "There is nothing to estimate the spread over seeds from" in shown
    assert f"attnlab run {file} --out pilot --set 'seeds=[1, 2, 3]'" in shown
    assert f"attnlab plan {file} --pilot pilot" in shown
    assert main(["plan", file, "--json", "--power", "0.9"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert list(record["detectable_in_sd"]) == ["5", "7", "10", "20"]
    for number, effects in record["detectable_in_sd"].items():
        assert compute_power(Noise(1.0, math.inf), int(number), effects["0.9"], 0.025) == pytest.approx(0.9, abs=1e-3)


def test_declared_looks_are_planned_at_the_last_ones_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = two_arms(looks=[5, 10])
    folder = str(write_folder(tmp_path / "study", {"dot": DOT, "better": OPEN}, plain))
    assert prospect([folder], capsys)["level"] == pytest.approx(look_limits((5, 10))[10])
    assert main(["plan", folder]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "planned at the limit of the last declared look" in shown
    assert "more than 10 seeds are past the declared looks" in shown


def test_open_looks_are_said_not_to_be_counted_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER}, two_arms(looks="open"))
    assert main(["plan", str(folder)]) == 0
    assert "looks are open-ended and need more seeds than this" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.toml"], "cannot read the study file nowhere.toml"),
        (["EMPTY"], "holds no study: it has no ledger.sqlite"),
        (["FILE", "--pilot", "nowhere"], "nowhere is no folder"),
        (["PILOT", "--spread", "1"], "whose runs are the pilot; omit --spread"),
        (["FILE", "--spread", "1", "--pilot", "PILOT"], "--pilot and --spread both give the spread"),
        (["FILE", "--spread", "0"], "--spread takes a number from 1e-100 to 1e+100"),
        (["FILE", "--power", "1.2"], "--power takes a number between 0 and 1, such as 0.8; it has 1.2"),
        (["FILE", "--alpha", "0"], "--alpha takes a number between 0 and 0.5"),
        (["FILE", "--set", "phases.recall.smallest=none"], "has a smallest difference of interest; set it"),
        ([], "For example: attnlab plan study.toml --pilot pilot"),
    ],
)
def test_wrong_requests_are_one_message_and_status_2(
    words: list[str], message: str, file: str, pilot: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    places = {"FILE": file, "PILOT": pilot, "EMPTY": str(empty)}
    assert main(["plan", *(places.get(word, word) for word in words)]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""


def test_one_arm_has_nothing_to_be_compared_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = content()
    plain["arms"] = {"dot": "dot | softmax"}
    assert main(["plan", str(write_folder(tmp_path / "study", {}, plain))]) == 2
    assert "has one arm, and nothing to compare it with" in capsys.readouterr().err


def test_a_claim_needs_no_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--difference", "0.4", "--sd", "0.5"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [rows[at].split()[-2:] for at in (1, 3)] == [["26", "34"], ["17", "21"]]
    assert "a verdict at 0.05 is BETTER or WORSE as often as the column says" in " ".join(" ".join(rows).split())
    assert main(["plan", "--difference", "0.4", "--sd", "0.5", "--power", "0.8", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["seeds_per_arm"]["not paired"] == {"0.8": 26}


def test_a_difference_with_the_spread_of_a_paired_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--difference", "0.4", "--spread", "0.5", "--power", "0.8", "--json"]) == 0
    of_spread = json.loads(capsys.readouterr().out)
    assert main(["plan", "--difference", "0.4", "--sd", "0.5", "--power", "0.8", "--json"]) == 0
    of_arms = json.loads(capsys.readouterr().out)
    # The SD of a difference of two arms of SD 0.5 with correlation 0.5 is 0.5.
    assert of_spread["seeds_per_arm"] == {"paired": of_arms["seeds_per_arm"]["paired, correlation 0.5"]}


def test_the_plan_of_a_file_says_how_power_is_counted(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", file, "--spread", "0.03", "--power", "0.001"]) == 0
    assert "power is how often a verdict finds the difference by its own rule" in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize(
    "words", [["--difference", "0.4"], ["--sd", "1"], ["--difference", "1", "--sd", "1", "--spread", "1"],
              ["quickstart", "--difference", "1", "--sd", "1"], ["--difference", "0", "--sd", "1"]],
)  # fmt: skip
def test_a_claim_with_wrong_options_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *words]) == 2
    assert "--difference" in capsys.readouterr().err


def test_an_undecided_study_says_what_the_plan_says(pilot: str, capsys: pytest.CaptureFixture[str]) -> None:
    seeds = prospect([pilot], capsys)["seeds"]["0.8"]
    assert main(["compare", pilot]) == 0
    shown = capsys.readouterr().out
    assert shown.count("to decide what is INCONCLUSIVE") == 1
    assert f"{seeds:.0f} seeds per arm, instead of 5, find a true difference of 0.02 with 80% power" in shown
