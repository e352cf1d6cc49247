"""Which keys a query may see: the causal rule, the caller's mask, and the counts that `divide` and −log n need.

Query i of Q is at position i + K − Q among K keys, so that one query against a longer cache sees all of it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attnlab.errors import ShapeError


def as_mask(mask: Tensor | None, shape: tuple[int, int, int, int]) -> Tensor | None:
    """Check a boolean mask (True = may attend) against [b h q k] and return it with four axes."""
    if mask is None:
        return None
    b, h, q, k = shape
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        came = mask.dtype if isinstance(mask, Tensor) else f"a {type(mask).__name__}"
        raise ShapeError(f"mask must be boolean, True = may attend; it is {came}")
    full = mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape)) if mask.dim() <= 4 else mask
    if full.dim() != 4 or any(size not in (1, need) for size, need in zip(full.shape, shape, strict=True)):
        hint = {
            2: "; pass a padding mask [batch, keys] as mask[:, None, None, :]",
            3: "; pass a mask [batch, queries, keys] as mask[:, None]",
        }.get(mask.dim(), "; omitted leading axes count as 1")
        sizes = f"[batch={b}, heads={h}, queries={q}, keys={k}]"
        raise ShapeError(f"mask of shape {tuple(mask.shape)} does not broadcast to {sizes}{hint}")
    return full if full.shape[-1] == k else full.expand(-1, -1, -1, k)


@dataclass(frozen=True)
class Visibility:
    """What each of `num_queries` queries may see of `num_keys` keys. `mask` is [b|1 h|1 q|1 k] or None.

    first: the position of the first query, if the last query is not at the last key.
    """

    num_queries: int
    num_keys: int
    causal: bool
    mask: Tensor | None
    device: torch.device
    first: int | None = None

    @property
    def offset(self) -> int:
        """The position of the first query."""
        return self.num_keys - self.num_queries if self.first is None else self.first

    @property
    def is_by_key(self) -> bool:
        """Whether the mask, if any, hides the same keys from every query (padding)."""
        return self.mask is None or self.mask.shape[2] == 1

    def rows(self, start: int, stop: int, horizon: int) -> "Visibility":
        """Return what queries start…stop may see of the first `horizon` keys, which must include all they can see."""
        mask = self.mask
        if mask is not None:
            mask = mask[..., :horizon] if mask.shape[2] == 1 else mask[:, :, start:stop, :horizon]
        return Visibility(stop - start, horizon, self.causal, mask, self.device, self.offset + start)

    def horizon(self, stop: int) -> int:
        """Return how many leading keys the queries before `stop` can see at most."""
        return max(0, min(self.num_keys, stop + self.offset)) if self.causal else self.num_keys

    @property
    def causal_pairs(self) -> Tensor | None:
        """The pairs that the causal rule allows, [q k], or None if it allows all."""
        if not self.causal or self.offset >= self.num_keys - 1:
            return None
        queries = torch.arange(self.num_queries, device=self.device)[:, None] + self.offset
        return torch.arange(self.num_keys, device=self.device) <= queries

    @property
    def pairs(self) -> Tensor | None:
        """The pairs that the causal rule and the mask allow, broadcastable to [b h q k], or None for all."""
        causal = self.causal_pairs
        if self.mask is None or causal is None:
            return causal if self.mask is None else self.mask
        return self.mask & causal

    @property
    def count(self) -> Tensor:
        """The number of keys each query sees, [b|1 h|1 q 1], without forming the pairs if the mask is by key."""
        if not self.is_by_key:
            pairs = self.pairs
            assert pairs is not None
            return pairs.sum(-1, keepdim=True)
        if not self.causal:
            all_keys = torch.full((1, 1, 1, 1), self.num_keys, device=self.device)
            count = all_keys if self.mask is None else self.mask.sum(-1, keepdim=True)
            return count.expand(-1, -1, self.num_queries, 1)
        seen = torch.arange(self.num_queries, device=self.device) + self.offset + 1
        seen = seen.clamp(0, self.num_keys)
        if self.mask is None:
            return seen[None, None, :, None]
        running = torch.nn.functional.pad(self.mask.cumsum(-1), (1, 0))
        return running[:, :, 0, :][..., seen][..., None]

    @property
    def key_count(self) -> Tensor:
        """For divide_at=key: the number of visible keys up to and including each key, [b|1 h|1 q|1 k].

        Without the causal rule keys have no order, and every key counts what its query sees.
        """
        if not self.causal:
            return self.count
        if self.mask is None:
            return torch.arange(1, self.num_keys + 1, device=self.device)[None, None, None, :]
        return self.mask.cumsum(-1)

    @property
    def empty_rows(self) -> Tensor | None:
        """The queries that see nothing, [b|1 h|1 q 1], or None if there are none, which saves a pass."""
        if self.mask is None and self.num_keys > 0 and not (self.causal and self.offset < 0):
            return None
        empty = self.count == 0
        # The values of a mask are unknown while tracing, and reading them from a GPU would wait for it.
        is_known = not torch.compiler.is_compiling() and self.device.type == "cpu"
        return None if is_known and not bool(empty.any()) else empty
