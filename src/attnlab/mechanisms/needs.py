"""What a stage may ask for beside its tensors. It asks by a keyword-only parameter of its `__call__`:

    def __call__(self, q, k, p, *, positions): ...         needs positions
    def __call__(self, scores, n, p, *, visible): ...      needs to know which pairs are visible

A parameter without a default is required: where a call cannot give it, the call is an error. A parameter with the
default None is only given where there is something to say.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from attnlab.errors import MechanismError, closest

NEEDS: Mapping[str, tuple[str, ...]] = {
    "score": ("positions", "visible"),
    "weights": ("positions", "visible"),
}
"""What the stages of each slot may ask for. The stages of other slots have all they may know as arguments."""


@dataclass(frozen=True, eq=False)
class Positions:
    """Where queries and keys stand in their sequences: whole numbers, [b|1 1 q] and [b|1 1 k].

    A kernel may hand over some of the queries, and the keys up to the last one that these can see. Padding and cache
    slots without a token have numbers without a meaning; no query sees them.
    """

    queries: Tensor
    keys: Tensor

    @property
    def distances(self) -> Tensor:
        """The position of the query less that of the key, [b|1 1 q k]: positive for keys of the past."""
        return self.queries[..., :, None] - self.keys[..., None, :]

    def rows(self, start: int, stop: int, horizon: int) -> Positions:
        """Return the positions of queries start…stop and of the first `horizon` keys."""
        return Positions(self.queries[..., start:stop], self.keys[..., :horizon])


def read_needs(name: str, slot: str, cls: type) -> dict[str, bool]:
    """Return what a stage's `__call__` asks for, and whether it requires it; refuse what its slot is not given."""
    call = inspect.getattr_static(cls, "__call__", None)
    if call is None:
        return {}
    asked = [p for p in inspect.signature(call).parameters.values() if p.kind is p.KEYWORD_ONLY]
    given = NEEDS.get(slot, ())
    for parameter in asked:
        if parameter.name not in given:
            hint = closest(parameter.name, given) or (f"; it may ask for {' or '.join(given)}" if given else "")
            raise MechanismError(f"stage '{name}' asks for '{parameter.name}', which a {slot} stage is not given{hint}")
    return {parameter.name: parameter.default is parameter.empty for parameter in asked}
