"""How a mask of limited reach cuts queries into blocks, and which keys each block can see."""

from collections.abc import Iterator
from dataclasses import dataclass

from .call import Request

LEAST, MOST = 16, 96
"""Queries of a block: as many as the reach within these bounds. More of them see more keys that are masked; fewer make
matrix products too small."""


@dataclass(frozen=True)
class Band:
    """How queries are cut: those before `first`, `num_blocks` blocks of `rows`, and the rest.

    Query i is at key i + offset, and sees `before` keys before that, and `after` behind it, where these exist.
    """

    num_queries: int
    num_keys: int
    offset: int
    before: int
    after: int

    @classmethod
    def of(cls, request: Request, offset: int | None = None) -> "Band":
        """Cut a request with a reach; by default the last query is at the last key."""
        assert request.reach is not None
        offset = request.num_keys - request.num_queries if offset is None else offset
        before = request.reach - 1
        return cls(request.num_queries, request.num_keys, offset, before, 0 if request.causal else before)

    @property
    def rows(self) -> int:
        """The queries of a block."""
        return max(1, min(self.num_queries, max(LEAST, min(MOST, self.before + 1))))

    @property
    def width(self) -> int:
        """The keys of a block."""
        return self.before + self.rows + self.after

    @property
    def first(self) -> int:
        """The first query of the blocks: those before it miss keys, or would not fill a block."""
        start = min(max(0, self.before - self.offset), self.num_queries)
        return start + max(0, self._stop - start) % self.rows

    @property
    def _stop(self) -> int:
        """The query after the last one that misses no keys behind it."""
        return min(self.num_queries, self.num_keys - self.offset - self.after)

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return max(0, self._stop - self.first) // self.rows

    @property
    def last(self) -> int:
        """The query after the blocks."""
        return self.first + self.num_blocks * self.rows

    def find_keys(self, start: int, stop: int) -> slice:
        """Return the keys that queries start…stop can see; at least one, since not every kernel takes none."""
        low = min(max(0, start + self.offset - self.before), self.num_keys - 1)
        return slice(low, max(low + 1, min(self.num_keys, stop + self.offset + self.after)))

    @property
    def num_pairs(self) -> int:
        """The pairs that are computed."""
        ends = ((0, self.first), (self.last, self.num_queries))
        seen = (self.find_keys(start, stop) for start, stop in ends)
        outside: int = sum(
            (stop - start) * (keys.stop - keys.start) for (start, stop), keys in zip(ends, seen, strict=True)
        )
        return outside + self.num_blocks * self.rows * self.width

    def list_blocks(self, rows: int, multiple: int) -> Iterator[tuple[slice, slice]]:
        """Yield blocks of `rows` queries with the keys that they can see.

        Where they exist, more keys before these make the number of keys a multiple.
        """
        for start in range(0, self.num_queries, rows):
            stop = min(start + rows, self.num_queries)
            keys = self.find_keys(start, stop)
            more = -(keys.stop - keys.start) % multiple
            yield slice(start, stop), slice(max(0, keys.start - more), keys.stop)
