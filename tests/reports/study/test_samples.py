"""Continuations side by side, and mean losses of sentences."""

from pathlib import Path

from .made import HOSTILE
from .reading import contents


def test_samples_stand_side_by_side_and_losses_are_means(folder: Path) -> None:
    found = contents(folder)
    (samples,), (sentences,) = found.samples, found.sentences
    assert samples.arms == ["dot", "better", "leaking", "worse"]
    assert [seed for _, seed, _ in samples.rows] == [1, 2, 3]
    assert "first 3 of 5 seeds" in samples.note
    assert sentences.rows[0] == (HOSTILE, ["2.5 (12.2)"] * 4)
