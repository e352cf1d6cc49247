"""Pairing is tested: hashes that differ anywhere refuse a paired analysis."""

import pytest

from attnlab.errors import StatisticsError
from attnlab.statistics import check_pairing, compare

SAME = {"init": "a1", "batches": "b2", "evaluation": "c3"}
RUNS = {str(seed): dict(SAME) for seed in range(5)}


def test_the_same_hashes_are_pairs() -> None:
    found = check_pairing(RUNS, {seed: dict(hashes) for seed, hashes in reversed(RUNS.items())})
    assert found.is_paired
    assert found.reason == ""
    found.require()


@pytest.mark.parametrize("what", ["init", "batches", "evaluation"])
def test_a_hash_that_differs_refuses(what: str) -> None:
    found = check_pairing(RUNS, RUNS | {"3": SAME | {what: "other"}})
    assert found.differences == (("3", what),)
    assert found.reason == f"not paired: {what} differs at seed 3"
    with pytest.raises(StatisticsError, match=f"not paired: {what} differs at seed 3. Run both arms"):
        found.require()


def test_what_is_missing_is_no_pair() -> None:
    assert not check_pairing(RUNS, {seed: RUNS[seed] for seed in list(RUNS)[:4]}).is_paired
    assert not check_pairing(RUNS, RUNS | {"2": {"init": "a1"}}).is_paired
    assert not check_pairing({"1": {}}, {"1": {}}).is_paired


def test_the_reason_is_a_verdict() -> None:
    reason = check_pairing(RUNS, RUNS | {"3": SAME | {"init": "x", "batches": "y"}}).reason
    found = compare([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 3.0, 4.0, 5.0, 7.0], obstacle=reason)
    assert found.verdict == "NOT COMPARABLE (not paired: init differs at seed 3, and 1 more)"
