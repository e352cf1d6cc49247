"""Trivial strategies on probes reach what can be worked out by hand, and no more."""

from types import SimpleNamespace
from typing import Any

import pytest

from attnlab.data import PROBES, make_probe
from attnlab.tasks import load
from attnlab.tasks.batch import IGNORED, Feature
from attnlab.tasks.floors import score_sequence_strategies
from attnlab.tasks.floors.sequences import ANY, BIGRAM, COMMONEST, LIKELIEST, MAJORITY, POSITION

NO = IGNORED


def rows_of(text: str, split: str) -> tuple[Any, list[Any], list[Feature]]:
    """Return the task of a probe, its examples to evaluate on, and some to train on."""
    probe = make_probe(text)
    task = load(probe.NAME, vocab=probe.vocab, length=probe.length)
    features = task.generate_features(probe, range(1024), "train")
    ids, labels = probe.batch(range(600), split)
    examples = [SimpleNamespace(input_ids=a, labels=b) for a, b in zip(ids.tolist(), labels.tolist(), strict=True)]
    return task, examples, features


def test_each_strategy_by_hand() -> None:
    sequences = [([5, 6, 5, 9], [NO, NO, NO, 5]), ([6, 6, 5, 9], [NO, NO, NO, 5]), ([7, 5, 6, 9], [NO, NO, NO, 6])]
    values = score_sequence_strategies(sequences)
    assert values[MAJORITY] == pytest.approx(2 / 3)
    # 5 twice; 6 twice, wrong; 5 or 6, each half.
    assert values[COMMONEST] == pytest.approx((1 + 0 + 0.5) / 3)
    assert values[ANY] == pytest.approx(0.5)
    assert values[POSITION.format(3)] == pytest.approx(1.0)
    assert LIKELIEST not in values
    assert BIGRAM not in values


def test_what_comes_after_a_question_is_not_known() -> None:
    values = score_sequence_strategies([([9, 5], [5, NO]), ([9, 6], [6, NO])])
    assert values[COMMONEST] == values[ANY] == 0


def test_sequences_of_different_lengths_are_compared_as_they_are() -> None:
    values = score_sequence_strategies([([5, 5], [NO, 5]), ([6, 7, 6], [NO, NO, 6])])
    assert values[COMMONEST] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("mqar?vocab=8192&length=64&pairs=4", 0.25, 0.31),
        ("copy?vocab=512&length=25", 1 / 12, 0.12),
        ("copy?vocab=512&length=25&blanks=0", 1 / 12, 0.12),
        ("averaging?vocab=17&marked=1", 0.12, 0.3),
        ("iid?vocab=8", 0.12, 0.15),
        ("memorization", 0.0, 0.02),
        ("compression", 1 / 15, 0.075),
        ("parity", 0.5, 0.52),
        ("permutations", 1 / 64, 0.04),
        ("in_context_recall", 0.25, 0.4),
        ("induction?vocab=512&length=32", 0.0, 0.2),
    ],
)
def test_floors_of_probes_are_far_below_their_ceiling(text: str, low: float, high: float) -> None:
    task, examples, features = rows_of(text, "dev")
    floor = task.floor(SimpleNamespace(examples=examples), features)
    assert low <= floor.value <= high


def test_knowing_the_position_is_the_task_of_copying_alone() -> None:
    assert [name for name, kind in PROBES.items() if kind.IS_POSITIONAL] == ["copy"]


def test_a_bigram_that_holds_is_found() -> None:
    _, examples, features = rows_of("permutations?length=3", "dev")
    values = score_sequence_strategies([(one.input_ids, one.labels) for one in examples], features)
    assert values[BIGRAM] > 0.3  # the first product is the first permutation itself
