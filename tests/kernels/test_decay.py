"""What is left of a key for a query: a share of at most 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from attnlab import attend, weights
from attnlab.errors import RequestError
from attnlab.mechanisms import Forget, stage


@pytest.mark.usefixtures("own_stages")
def test_a_share_instead_of_its_logarithm_is_refused() -> None:
    @stage("growing")
    @dataclass(frozen=True)
    class Growing(Forget):
        """f where log f is needed."""

        uses_x = False

        def log_kept(self, x: Tensor | None, p: Any, k: Tensor) -> Tensor:
            return torch.sigmoid(k.sum(-1, keepdim=True))

    q = torch.randn(1, 2, 6, 4)
    for kernel in ("auto", "reference"):
        with pytest.raises(RequestError, match=r"'growing' must return log f ≤ 0.*return its logarithm"):
            attend(q, q, q, "dot | softmax | growing", causal=True, kernel=kernel)


def test_without_a_causal_mask_a_score_loses_the_distance_of_the_sums() -> None:
    q, k = torch.randn(2, 1, 2, 6, 4, dtype=torch.float64)
    places = torch.arange(6)
    distances = (places[:, None] - places).abs() * torch.log(torch.tensor(0.9, dtype=torch.float64))
    found = weights(q, k, "dot | softmax | forget(rate=0.9)")
    torch.testing.assert_close(found, (q @ k.mT / 2 + distances).softmax(-1))
