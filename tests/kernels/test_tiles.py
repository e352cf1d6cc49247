"""Tiles cover every visible pair once, in the order of their index, and fit their work space."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnlab.kernels.tiles import ELEMENTS, Tiling

TILINGS = st.builds(
    Tiling, st.integers(0, 4), st.integers(1, 20), st.integers(0, 300), st.integers(0, 300), st.booleans()
)


@given(TILINGS)
def test_every_visible_pair_is_in_exactly_one_tile(tiling: Tiling) -> None:
    num_tiles = torch.zeros(tiling.batch, tiling.num_heads, tiling.num_queries, tiling.num_keys, dtype=torch.int8)
    for index, tile in enumerate(tiling):
        assert tile.index == index
        part = num_tiles[tile.batch, tile.heads, tile.start : tile.stop, : tile.horizon]
        assert tuple(part.shape) == tile.by_head
        part += 1
    assert (num_tiles <= 1).all()
    visible = torch.ones(tiling.num_queries, tiling.num_keys, dtype=torch.bool)
    if tiling.causal:
        visible = visible.tril(tiling.num_keys - tiling.num_queries)
    assert (num_tiles[:, :, visible] == 1).all()


@given(TILINGS)
def test_every_tile_fits_the_work_space(tiling: Tiling) -> None:
    assert all(tile.num_pairs <= tiling.largest for tile in tiling)
    assert tiling.largest <= max(ELEMENTS, tiling.rows * tiling.num_keys)


@pytest.mark.parametrize("num_queries", [1, 127, 128, 129, 300])
@pytest.mark.parametrize("num_keys", [1, 60, 128, 200, 700])
@pytest.mark.parametrize("causal", [True, False])
def test_the_pairs_are_counted_without_listing_tiles(num_queries: int, num_keys: int, causal: bool) -> None:
    tiling = Tiling(3, 5, num_queries, num_keys, causal)
    assert tiling.num_pairs == sum(tile.num_pairs for tile in tiling)
