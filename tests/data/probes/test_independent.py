"""Independent tokens are uniform, and each is labelled with the next."""

from __future__ import annotations

import numpy as np

from attnlab.data import make_probe


def test_independent_tokens_are_uniform_and_labelled_with_the_next() -> None:
    ids, labels = make_probe("iid?vocab=8&length=50").batch(np.arange(400))
    assert (labels[:, :-1] == ids[:, 1:]).all()
    shares = np.bincount(ids.ravel(), minlength=8) / ids.size
    assert abs(shares - 1 / 8).max() < 0.01
