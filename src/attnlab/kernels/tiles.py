"""How the pairs of a problem are cut into tiles: some batch rows and heads, a block of queries, and all the keys
these queries can see. A tile's scores fit the cache; keys no query of it may see are never computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

ROWS = 128
"""Queries a tile: enough for a matrix product to run at full speed."""

ELEMENTS = 128 * 2048
"""Scores a tile holds at most (1 MB in fp32), unless one block of rows is larger by itself."""


@dataclass(frozen=True)
class Tile:
    """A block of pairs: batch rows × heads × queries start…stop × the first `horizon` keys."""

    index: int
    batch: slice
    heads: slice
    start: int
    stop: int
    horizon: int

    @property
    def num_groups(self) -> int:
        """How many (batch, head) couples the tile holds."""
        return int(self.batch.stop - self.batch.start) * self.num_heads

    @property
    def num_heads(self) -> int:
        """How many heads of each batch row the tile holds."""
        return int(self.heads.stop - self.heads.start)

    @property
    def num_rows(self) -> int:
        """How many queries of each the tile holds."""
        return self.stop - self.start


@dataclass(frozen=True)
class Tiling:
    """The cut of a problem, a function of its sizes alone: whole batch rows together, or some heads of one."""

    batch: int
    num_heads: int
    num_queries: int
    num_keys: int
    causal: bool

    @property
    def rows(self) -> int:
        """The queries of a tile."""
        return max(1, min(self.num_queries, ROWS))

    @property
    def largest(self) -> int:
        """The scores of the largest tile, or a few more: what a work space must hold."""
        first = next(self.groups(), None)
        if first is None:
            return 0
        batch, heads = first
        num_groups = int(batch.stop - batch.start) * int(heads.stop - heads.start)
        return num_groups * self.rows * self.horizon(self.num_queries)

    def groups(self) -> Iterator[tuple[slice, slice]]:
        """Yield the batch rows and heads that go together."""
        fit = max(1, ELEMENTS // max(1, self.rows * self.num_keys))
        if fit >= self.num_heads:
            step = fit // self.num_heads
            for b in range(0, self.batch, step):
                yield slice(b, min(b + step, self.batch)), slice(0, self.num_heads)
        else:
            for b in range(self.batch):
                for h in range(0, self.num_heads, fit):
                    yield slice(b, b + 1), slice(h, min(h + fit, self.num_heads))

    def __iter__(self) -> Iterator[Tile]:
        index = 0
        for batch, heads in self.groups():
            for start in range(0, self.num_queries, self.rows):
                stop = min(start + self.rows, self.num_queries)
                yield Tile(index, batch, heads, start, stop, self.horizon(stop))
                index += 1

    def horizon(self, stop: int) -> int:
        """Return how many leading keys the queries before `stop` can see at most."""
        seen = stop + self.num_keys - self.num_queries
        return max(0, min(self.num_keys, seen)) if self.causal else self.num_keys
