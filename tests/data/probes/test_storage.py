"""Memorization asks for facts that are the same everywhere; compression asks for every token."""

from __future__ import annotations

import numpy as np

from attnlab.data.probes import IGNORED, Compression, Memorization


def test_facts_are_the_same_in_every_row_split_and_seed() -> None:
    told: dict[int, int] = {}
    for seed, split in ((0, "train"), (0, "dev"), (1, "test")):
        ids, labels = Memorization(seed=seed).batch(np.arange(100), split)
        assert (ids[:, 1::2] == 255).all()
        for key, value in zip(ids[:, 0::2].ravel().tolist(), labels[:, 1::2].ravel().tolist(), strict=True):
            assert told.setdefault(key, value) == value
    assert len(told) == len(set(told.values())) == 127
    assert max(told) < 127 <= min(told.values())
    assert max(told.values()) < 255


def test_compression_asks_for_all_but_the_mark() -> None:
    ids, labels = Compression().batch(np.arange(50))
    assert (ids[:, -1] == 15).all()
    assert ids[:, :-1].max() == 14
    assert (labels[:, :-1] == ids[:, :-1]).all()
    assert (labels[:, -1] == IGNORED).all()
