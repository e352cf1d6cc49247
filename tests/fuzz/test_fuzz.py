"""A small part of `make fuzz`: the kinds whose commands take milliseconds, and the fuzzer's own eye for faults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from attnlab.cli import verbs

from . import driver
from .driver import Fuzzer
from .kinds import KINDS

NUMS: Mapping[str, int] = {
    "grammar": 30, "study files": 8, "--set": 8, "options": 12, "tables": 12, "data files": 15, "predictions": 12,
    "matrices": 8, "plug-ins": 8, "ledgers": 10, "training": 6,
}  # fmt: skip
SEED = 7


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    """Make the valid examples once."""
    return Fuzzer(tmp_path_factory.mktemp("fuzz") / "fuzz", SEED, NUMS)


@pytest.mark.parametrize("kind", NUMS)
def test_broken_inputs_get_one_sentence(fuzzer: Fuzzer, kind: str) -> None:
    answers = [fuzzer.run(kind, number) for number in range(NUMS[kind])]
    assert [fault for _, fault in answers if fault] == []
    assert any(status == 2 for status, _ in answers)


def test_the_same_seed_and_number_give_the_same_input(fuzzer: Fuzzer) -> None:
    assert fuzzer.run("tables", 3) == fuzzer.run("tables", 3)


def test_a_bug_a_hang_and_a_file_left_behind_are_noticed(fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> int:
        (Path.cwd() / "left").touch()
        print("\x1b")
        raise ZeroDivisionError

    monkeypatch.setattr(driver, "main", lambda argv: verbs.main(["fail"], {"fail": lambda: fail(), "other": lambda: 0}))
    status, fault = fuzzer.run("tables", 0)
    assert status == 3
    assert "left behind ['left']" in fault
    assert "status 3" in fault

    def hang(argv: list[str]) -> int:
        while True:
            pass

    monkeypatch.setattr(driver, "main", hang)
    monkeypatch.setattr(driver, "SECONDS", 1)
    assert "hang" in fuzzer.run("tables", 0)[1]


def test_every_kind_has_a_share() -> None:
    assert {*NUMS} < {*KINDS}
    assert all(share > 0 for share, _ in KINDS.values())
