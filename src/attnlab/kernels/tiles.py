"""How the pairs of a problem are cut into tiles: some batch rows and heads, a block of queries, and all keys that
these queries can see. A tile's scores fit the cache; keys that none of its queries see are never computed."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

ROWS = 128
"""Queries per tile: enough for a matrix product to run at full speed."""

ELEMENTS = 128 * 2048
"""Scores per tile at most (1 MB in fp32), unless a single block of rows is larger."""


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
    def by_head(self) -> tuple[int, int, int, int]:
        """The number of batch rows, heads, queries and keys."""
        batch, heads = self.batch, self.heads
        return batch.stop - batch.start, heads.stop - heads.start, self.stop - self.start, self.horizon

    @property
    def shape(self) -> tuple[int, int, int]:
        """The number of groups (batch rows × heads), queries and keys."""
        num_rows, num_heads, num_queries, num_keys = self.by_head
        return num_rows * num_heads, num_queries, num_keys

    @property
    def num_pairs(self) -> int:
        """The number of scores."""
        return math.prod(self.by_head)


@dataclass(frozen=True)
class Tiling:
    """The tiles of a problem, a function of its sizes alone: whole batch rows together, or some heads of one."""

    batch: int
    num_heads: int
    num_queries: int
    num_keys: int
    causal: bool

    @property
    def rows(self) -> int:
        """The number of queries of a tile."""
        return max(1, min(self.num_queries, ROWS))

    @property
    def largest(self) -> int:
        """An upper bound on the scores of a tile: the size of a work space."""
        for batch, heads in self.groups():
            return Tile(0, batch, heads, 0, self.rows, self.horizon(self.num_queries)).num_pairs
        return 0

    def groups(self) -> Iterator[tuple[slice, slice]]:
        """Yield the batch rows and heads that share a tile."""
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

    @property
    def num_pairs(self) -> int:
        """The number of scores of all tiles, without listing them: a length of 10⁹ has millions."""
        whole, rest = divmod(self.num_queries, self.rows)
        offset = self.num_keys - self.num_queries
        if self.causal:
            first = max(1, -offset // self.rows + 1)  # the first block of queries that sees a key
            num = max(0, whole - first + 1)
            pairs = self.rows * (self.rows * (first + whole) * num // 2 + offset * num)
        else:
            pairs = self.rows * whole * self.num_keys
        return self.batch * self.num_heads * (pairs + rest * self.num_keys)

    def horizon(self, stop: int) -> int:
        """Return how many leading keys the queries before `stop` can see at most."""
        seen = stop + self.num_keys - self.num_queries
        return max(0, min(self.num_keys, seen)) if self.causal else self.num_keys
