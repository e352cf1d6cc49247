"""Tiles cover every visible pair once, in the order of their index, and fit their work space."""

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
