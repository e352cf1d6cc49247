"""What a study says of its sizes and horizons, and when it says that they cannot be compared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from attnlab.studies.answers.joint_answer import JointAnswer
from attnlab.studies.answers.study_folder import open_record

from ..joint import SIZES, Gain, horizons, three_sizes, write_joint

SHRINKING = {"small": 0.3, "medium": 0.2, "large": 0.1}


def ask(folder: Path, plain: dict[str, Any], gain: Gain, floor: float = 0.1, **hashes: str) -> JointAnswer:
    """Return the only joint answer of a study, as it is read from its ledger a second time."""
    write_joint(folder, plain, gain, floor, **hashes)
    with open_record(folder) as record:
        first = record.joint_answers
    with open_record(folder) as record:
        (answer,) = record.joint_answers
        assert first == [answer]
        return answer


def test_a_difference_that_falls_with_size_shrinks(tmp_path: Path) -> None:
    answer = ask(tmp_path, three_sizes(), lambda run: SHRINKING[run.size])
    assert answer.verdict == "SHRINKS WITH SIZE"
    assert answer.value == pytest.approx(-0.1, abs=0.01)
    assert [point.place for point in answer.points] == [*SIZES.values()]
    assert answer.smallest == pytest.approx(0.02 / 2)  # smallest over two doublings
    assert answer.line is not None
    assert answer.line == pytest.approx((0.3, 0.1), abs=0.02)


def test_the_smallest_slope_can_be_given_and_large_enough_is_none_worth_having(tmp_path: Path) -> None:
    answer = ask(tmp_path, three_sizes(trend={"smallest": 0.5}), lambda run: SHRINKING[run.size])
    assert answer.verdict == "NO TREND WORTH HAVING"
    assert answer.smallest == 0.5


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ({"architecture": "llama"}, "architecture"),
        ({"tokenizer": "word"}, "tokenizer"),
        ({"config": {"n_layer": 1, "n_embd": 48, "n_head": 2, "n_positions": 64}}, r"config\.n_positions"),
    ],
)
def test_sizes_that_differ_otherwise_are_not_comparable(tmp_path: Path, sizes: dict[str, Any], why: str) -> None:
    plain = three_sizes()
    config = (
        {}
        if sizes.get("architecture") != "llama"
        else {"config": {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2}}
    )
    plain["sizes"]["large"] = {**plain["sizes"]["large"], **config, **sizes}
    answer = ask(tmp_path, plain, lambda run: SHRINKING[run.size])
    assert answer.value is None
    assert answer.verdict.startswith("NOT COMPARABLE (the sizes differ in ")
    assert re.search(why, answer.verdict)


def test_sizes_with_other_tokens_or_that_did_not_learn_are_not_comparable(tmp_path: Path) -> None:
    answer = ask(tmp_path / "tokens", three_sizes(), lambda run: SHRINKING[run.size], medium="other")
    assert answer.verdict == "NOT COMPARABLE (the sizes differ in what 'recall' is evaluated on)"
    answer = ask(tmp_path / "floor", three_sizes(), lambda run: 0.0, floor=0.9)
    assert answer.verdict.startswith("NOT COMPARABLE (in small, neither arm learned the task; in medium")


def test_a_budget_with_fewer_sizes_has_no_trend(tmp_path: Path) -> None:
    answer = ask(tmp_path, three_sizes(only_sizes=["small", "large"]), lambda run: SHRINKING[run.size])
    assert answer.verdict == "NOT COMPARABLE (2 sizes, and a trend needs 3)"


def test_two_seeds_are_too_few(tmp_path: Path) -> None:
    answer = ask(tmp_path, three_sizes(seeds=[1, 2]), lambda run: SHRINKING[run.size])
    assert answer.verdict == "TOO FEW SEEDS (n < 3)"


def test_after_an_undeclared_look_the_e_process_decides_the_slope(tmp_path: Path) -> None:
    ask(tmp_path, three_sizes(), lambda run: SHRINKING[run.size])
    answer = ask(tmp_path, three_sizes(seeds=list(range(1, 13))), lambda run: SHRINKING[run.size])
    assert "UNDECLARED LOOK" in answer.registration
    assert answer.method.startswith("e-process")
    assert answer.verdict == "SHRINKS WITH SIZE"


@pytest.mark.parametrize(
    ("gains", "words"),
    [((0.3, 0.2, 0.1), "GAP CLOSING"), ((0.1, 0.2, 0.3), "GAP OPENING"), ((0.2, 0.2, 0.2), "GAP STEADY")],
)
def test_a_gap_over_horizons(tmp_path: Path, gains: tuple[float, ...], words: str) -> None:
    by_phase = dict(zip(("recall@2", "recall@4", "recall@8"), gains, strict=True))
    changes = {} if words != "GAP STEADY" else {"seeds": list(range(1, 21))}
    answer = ask(tmp_path, horizons(**changes), lambda run: by_phase[run.phase])
    assert answer.verdict == words
    assert [point.name for point in answer.points] == list(by_phase)
    assert [point.place for point in answer.points] == [2, 4, 8]
    with open_record(tmp_path) as record:
        assert [one.phase for one in record.answers] == ["recall@8"]  # the verdict is on the longest alone
