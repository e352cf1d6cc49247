"""The running sum: what torch is told about the operator, and sequences of several spans."""

import pytest
import torch

from attnlab import attend
from attnlab.kernels.running import TOKENS, blocks, running, spans


@pytest.mark.parametrize("causal", [False, True])
def test_the_running_operator_is_what_it_tells_torch(causal: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(3, 70, 4, generator=generator).requires_grad_() for _ in range(3))
    state, factor = torch.zeros(3, 4, 4), torch.ones(3, 70, 1)
    torch.library.opcheck(running, (q, k, v, state, factor, True, causal))
    torch.library.opcheck(running, (q, k, v, state, None, False, causal), test_utils="test_schema")


def test_sequences_longer_than_one_span_agree() -> None:
    shape = (3, 1, 2, 2500, 4)
    q, k, v = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).unbind(0)
    for causal in (False, True):
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        results = []
        for kernel in ("linear", "blockwise"):
            out = attend(inputs[0], inputs[1], inputs[2], "cosine | identity(divide=n)", causal=causal, kernel=kernel)
            results.append([out, *torch.autograd.grad(out.square().sum(), inputs)])
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(one, other)


def test_blocks_and_spans_cover_everything_once() -> None:
    assert [i for span in spans(2 * TOKENS + 1) for i in range(span.start, span.stop)] == list(range(2 * TOKENS + 1))
    assert [i for block in blocks(7, TOKENS // 3) for i in range(block.start, block.stop)] == list(range(7))
    assert max(block.stop - block.start for block in blocks(7, TOKENS // 3)) == 3
    assert len(list(blocks(2, 10 * TOKENS))) == 2
