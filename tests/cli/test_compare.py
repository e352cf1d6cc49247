"""`attnlab compare` says what a study's folder says, and of an unfinished study no more than its values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.statistics import compare
from attnlab.studies.ledger.database import Ledger

from ..studies.folders import BETTER, DOT, two_arms, write_folder
from ..studies.samples import content


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_folder(tmp_path_factory.mktemp("whole") / "study", {"dot": DOT, "better": BETTER}))


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> str:
    given = {"dot": DOT, "better": [0.6, None, 0.61]}
    return str(write_folder(tmp_path_factory.mktemp("unfinished") / "study", given))


def test_verdict_effects_seeds_and_other_figures_are_shown(whole: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", whole]) == 0
    shown = capsys.readouterr().out
    known = compare(dict(enumerate(DOT)), dict(enumerate(BETTER)), smallest=0.02)
    assert "BETTER" in shown
    assert f"{known.p:.3g}".replace("-", "−") in shown
    assert f"{known.effects.hedges_g:.3g}" in shown
    assert "recall, tiny: accuracy of every seed, the baseline first\nseed  dot   better\n1     0.5   0.6\n" in shown
    assert "exploratory: other figures" in shown
    assert "Benjamini–Hochberg" in shown
    assert "10 of 10 runs have ended" in shown


def test_json_has_all_of_it(whole: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", whole, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["study"], record["runs"], record["ended"], record["is_whole"]) == ("small", 10, 10, True)
    assert record["answers"][0]["verdict"] == "BETTER BY AT LEAST 0.02 AT SHARED SETTINGS"
    assert record["seeds"][0]["values"]["better"] == {str(seed): value for seed, value in enumerate(BETTER, 1)}
    (other,) = record["exploratory"]
    assert (other["arm"], other["figure"], other["num_seeds"]) == ("better", "loss", 5)
    assert other["difference"] == pytest.approx(-0.102)
    assert other["adjusted"] == pytest.approx(record["answers"][0]["comparison"]["p"])


def test_other_figures_of_all_arms_are_one_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"dot": DOT, "bypass": BETTER, "slow": [0.51, 0.50, 0.53, 0.50, 0.52]}
    folder = write_folder(tmp_path / "study", given, content(seeds=[1, 2, 3, 4, 5]))
    assert main(["compare", str(folder), "--json"]) == 0
    by_arm = {one["arm"]: one for one in json.loads(capsys.readouterr().out)["exploratory"]}
    assert by_arm["bypass"]["adjusted"] == pytest.approx(2 * by_arm["bypass"]["p"])
    assert by_arm["slow"]["adjusted"] == pytest.approx(by_arm["slow"]["p"])
    assert by_arm["bypass"]["level"] == pytest.approx(0.025)


def test_an_unfinished_study_has_values_and_no_comparison(unfinished: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", unfinished]) == 0
    shown = capsys.readouterr().out
    assert "8 of 10 runs have ended" in shown
    assert "no verdicts, and no comparison" in shown
    assert "2     0.52  diverged\n" in shown
    assert "4     0.49  not ended\n" in shown
    for word in ("BETTER", "Hedges", "exploratory", " p "):
        assert word not in shown
    assert main(["compare", unfinished, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["is_whole"], record["answers"], record["exploratory"]) == (False, [], [])


def test_a_filter_changes_what_is_shown_and_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"dot": DOT, "bypass": BETTER, "slow": [0.51, 0.50, 0.53, 0.50, 0.52]}
    folder = str(write_folder(tmp_path / "study", given, content(seeds=[1, 2, 3, 4, 5])))
    assert main(["compare", folder, "--json"]) == 0
    every = json.loads(capsys.readouterr().out)
    assert main(["compare", folder, "--json", "--arm", "bypass", "--phase", "recall", "--size", "tiny"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert [answer["arm"] for answer in one["answers"]] == ["bypass"]
    assert one["answers"][0] == next(answer for answer in every["answers"] if answer["arm"] == "bypass")
    assert list(one["seeds"][0]["values"]) == ["dot", "bypass"]


def test_an_arm_that_is_not_comparable_is_not_explored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": [None] * 5})
    assert main(["compare", str(folder), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["answers"][0]["verdict"].startswith("NOT COMPARABLE")
    assert record["exploratory"] == []
    assert record["seeds"][0]["values"]["better"] == dict.fromkeys("12345", "diverged")


def test_a_run_that_was_given_up_is_said_to_have_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER[:4]})
    ledger = Ledger(folder / "ledger.sqlite", is_new=False)
    ledger.give_up([run.id for run in ledger.runs() if run.arm == "better"][4], "no memory")
    ledger.close()
    assert main(["compare", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "5     0.53  failed\n" in shown
    assert "failed: recall, tiny, better, seed 5: no memory" in shown
    assert "TOO FEW SEEDS" in shown


def test_a_phase_that_is_not_compared_shows_its_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = two_arms()
    del plain["phases"][0]["smallest"]
    folder = write_folder(tmp_path / "study", {"dot": DOT, "better": BETTER}, plain)
    assert main(["compare", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "1     0.5   0.6\n" in shown
    assert "BETTER" not in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere is no folder; give the one a study was run in"),
        (["EMPTY"], "holds no study: it has no ledger.sqlite"),
        (["WHOLE", "--arm", "beter"], "the study has no arm 'beter', did you mean 'better'? It has better, dot"),
        (["WHOLE", "--phase", "x"], "the study has no phase 'x'. It has recall"),
        (["WHOLE", "--size", "x"], "the study has no size 'x'. It has tiny"),
        ([], "For example: attnlab compare study"),
    ],
)
def test_wrong_requests_are_one_message_and_status_2(
    words: list[str], message: str, whole: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"WHOLE": whole, "EMPTY": str(tmp_path)}
    assert main(["compare", *(places.get(word, word) for word in words)]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert list(tmp_path.iterdir()) == []
