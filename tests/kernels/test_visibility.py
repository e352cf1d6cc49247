"""Visibility: counts agree with the pairs they count, for every kind of mask and any block of rows."""

from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab.errors import ShapeError
from attnlab.kernels.visibility import Visibility, as_mask

CPU = torch.device("cpu")


def make(num_queries: int, num_keys: int, causal: bool, kind: str) -> Visibility:
    shape = {"keys": (2, 1, 1, num_keys), "pairs": (2, 1, num_queries, num_keys)}.get(kind)
    mask = None if shape is None else torch.rand(shape, generator=torch.Generator().manual_seed(0)) > 0.4
    return Visibility(num_queries, num_keys, causal, mask, CPU)


def full_pairs(visibility: Visibility) -> Tensor:
    pairs = visibility.pairs
    everything = torch.ones(2, 1, visibility.num_queries, visibility.num_keys, dtype=torch.bool)
    return everything if pairs is None else everything & pairs


@pytest.mark.parametrize("kind", ["none", "keys", "pairs"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("num_queries", "num_keys"), [(5, 5), (2, 6), (6, 2), (1, 4)])
def test_counts_and_blocks_agree_with_the_pairs(num_queries: int, num_keys: int, causal: bool, kind: str) -> None:
    visibility = make(num_queries, num_keys, causal, kind)
    pairs = full_pairs(visibility)
    assert torch.equal(visibility.count.expand(2, 1, -1, -1), pairs.sum(-1, keepdim=True))
    empty = ~pairs.any(-1, keepdim=True)
    assert bool(empty.any()) is (visibility.empty_rows is not None)
    assert visibility.empty_rows is None or torch.equal(visibility.empty_rows.expand(2, 1, -1, -1), empty)
    for start in range(num_queries):
        horizon = visibility.horizon(start + 1)
        rows = visibility.rows(start, start + 1, horizon)
        assert torch.equal(full_pairs(rows), pairs[:, :, start : start + 1, :horizon])
        assert not pairs[:, :, start, horizon:].any()


def test_the_count_of_a_key_leaves_padding_out() -> None:
    mask = torch.tensor([True, False, True])[None, None, None]
    assert Visibility(3, 3, True, mask, CPU).key_count.flatten().tolist() == [1, 1, 2]
    assert Visibility(3, 3, True, None, CPU).key_count.flatten().tolist() == [1, 2, 3]
    assert Visibility(3, 3, False, mask, CPU).key_count.flatten().tolist() == [2, 2, 2]


def test_a_mask_gets_four_axes() -> None:
    assert as_mask(None, (2, 3, 4, 5)) is None
    mask = as_mask(torch.ones(4, 1, dtype=torch.bool), (2, 3, 4, 5))
    assert mask is not None
    assert tuple(mask.shape) == (1, 1, 4, 5)


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(4, 5), "mask must be boolean"),
        (torch.ones(2, 5, dtype=torch.bool), r"pass a padding mask \[batch, keys\] as mask\[:, None, None, :\]"),
        (torch.ones(1, 2, 3, 4, 5, dtype=torch.bool), r"does not broadcast to \[batch=2, heads=3, queries=4, keys=5\]"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(mask: Tensor, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        as_mask(mask, (2, 3, 4, 5))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(2, 10, dtype=torch.bool), "as mask[:, None, None, :]"),
        (torch.ones(2, 10, 10, dtype=torch.bool), "as mask[:, None]"),
        (torch.ones(9, dtype=torch.bool), "omitted leading axes count as 1"),
        ([[True] * 10] * 10, "it is a list"),
    ],
)
def test_a_wrong_mask_is_refused_with_what_to_write(mask: Any, message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        as_mask(mask, (2, 4, 10, 10))
    assert message in str(caught.value)
