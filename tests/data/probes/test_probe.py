"""What every probe keeps: a row is a function of its number alone, in the vocabulary, and something is asked."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.data import PROBES, make_probe, open_source
from attnlab.data.probes import IGNORED
from attnlab.errors import DataError


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("name", PROBES)
def test_a_row_does_not_depend_on_the_batch_it_is_made_in(name: str, split: str) -> None:
    probe = make_probe(name)
    numbers = (5, 0, 10**12)
    together = probe.batch(numbers, split)
    for at, number in enumerate(numbers):
        for whole, alone in zip(together, probe.batch(number, split), strict=True):
            assert (alone[0] == whole[at]).all()


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("name", PROBES)
def test_tokens_and_labels_are_in_the_vocabulary_and_something_is_asked(name: str, split: str) -> None:
    probe = make_probe(name)
    ids, labels = probe.batch(np.arange(50), split)
    assert ids.shape == labels.shape == (50, probe.length)
    assert 0 <= ids.min() <= ids.max() < probe.vocab
    asked = labels != IGNORED
    assert asked.any(axis=1).all()
    assert 0 <= labels[asked].min() <= labels[asked].max() < probe.vocab


@pytest.mark.parametrize("name", PROBES)
def test_splits_and_seeds_share_no_rows(name: str) -> None:
    rows = [make_probe(name).batch(np.arange(20), split)[0] for split in ("train", "dev", "test")]
    rows.append(make_probe(f"{name}?seed=1").batch(np.arange(20), "dev")[0])
    assert len({row.tobytes() for some in rows for row in some}) == 80


def test_a_source_gives_the_same_rows() -> None:
    ids, labels = make_probe("copy?examples=300").batch(np.arange(300), "test")
    rows = list(open_source("embedded:copy?examples=300", split="test").rows())
    assert [row["input_ids"] for row in rows] == ids.tolist()
    assert [row["labels"] for row in rows] == labels.tolist()


def test_what_is_not_a_probe_is_refused() -> None:
    with pytest.raises(DataError, match="'pydoc' is not a probe; there are mqar, copy"):
        make_probe("pydoc")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mqar?pairs=17", "a length of at least 4·pairs = 68; it got length=64"),
        ("mqar?power=0", "a power above 0"),
        ("copy?blanks=2", "blanks of 0 or 1"),
        ("in_context_recall?length=9", "an even length"),
        ("noisy_recall?vocab=18", "a vocab of at least 20"),
        ("fuzzy_recall?motif=8", "a vocab of at least 17"),
        ("selective_copying?copied=128", "a length of at least 2·copied \\+ 1 = 257"),
        ("permutations?vocab=24", "a token for every permutation of five"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(name: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        make_probe(name)
