"""The private names of torch that kernels use are there, and do what they are used for."""

from __future__ import annotations

from pathlib import Path

import torch

from attnlab.kernels import compat


def test_softmax_backward_is_softmaxs_gradient_in_place() -> None:
    scores = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    weights, dw = torch.softmax(scores, -1), torch.randn(2, 3, 5, dtype=torch.float64)
    (expected,) = torch.autograd.grad(weights, scores, dw)
    compat.softmax_backward_(dw, weights.detach())
    torch.testing.assert_close(dw, expected)


def test_flash_attention_takes_causality_and_padding_at_once_and_has_a_gradient() -> None:
    q, k, v = (t.requires_grad_() for t in torch.randn(3, 1, 2, 6, 4))
    mask = torch.zeros(1, 1, 1, 6)
    mask[..., 0] = -torch.inf
    visible = (mask == 0) & torch.ones(6, 6, dtype=torch.bool).tril()
    scores = (q @ k.mT / 2).masked_fill(~visible, -torch.inf)[:, :, 1:]  # the first query sees nothing
    expected = torch.softmax(scores, -1) @ v
    grad = torch.randn_like(expected)
    gradients = torch.autograd.grad(expected, (k, v), grad)
    with torch.no_grad():
        out, logsumexp = compat.flash_attention(q, k, v, True, mask, 0.5)
        out, logsumexp = out.nan_to_num(0), logsumexp.masked_fill(torch.arange(6) == 0, torch.inf)
        full = torch.cat([torch.zeros_like(grad[:, :, :1]), grad], 2)
        _, dk, dv = compat.flash_attention_backward(full, (q, k, v, out, logsumexp), True, mask, 0.5)
    torch.testing.assert_close(out[:, :, 1:], expected.detach())
    for ours, theirs in zip((dk, dv), gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_constant_is_not_traced() -> None:
    @compat.mark_constant
    def look() -> int:
        return 3 if Path(__file__).read_text(encoding="utf-8") else 0  # torch.compile cannot trace reading a file

    torch.compiler.reset()
    compiled = torch.compile(lambda x: x * look(), backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [3, 3]


def test_the_numbers_in_results_are_counted() -> None:
    with compat.CountResults() as results:
        x = torch.zeros(3, 4)
        x[:2, None].expand(2, 5, 4) + x[0]
    assert max(results.counts) == 40
    assert results.counts[0] == 12
    assert (results.num_bytes[0], max(results.num_bytes)) == (48, 160)
