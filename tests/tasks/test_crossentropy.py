"""The loss computed in chunks is torch's, and so are its gradients."""

import pytest
import torch

from attnlab.tasks.crossentropy import compute_losses_and_hits, compute_summed_loss


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make several chunks of a small problem, the last one shorter."""
    monkeypatch.setattr("attnlab.tasks.crossentropy.CHUNK", 50)


@pytest.mark.parametrize("has_bias", [True, False])
def test_loss_and_gradients_are_those_of_whole_logits(has_bias: bool) -> None:
    torch.manual_seed(0)
    states = torch.randn(23, 6, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(11, 6, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(11, dtype=torch.float64, requires_grad=True) if has_bias else None
    labels = torch.randint(11, (23,))
    inputs = [t for t in (states, weight, bias) if t is not None]
    loss = compute_summed_loss(states, weight, bias, labels)
    gradients = torch.autograd.grad(3 * loss, inputs)
    logits = torch.nn.functional.linear(states, weight, bias)
    expected = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    for gradient, wanted in zip(gradients, torch.autograd.grad(3 * expected, inputs), strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=1e-10, atol=1e-12)
    nats, hits = compute_losses_and_hits(states, weight, bias, labels)
    torch.testing.assert_close(nats.sum(), expected)
    assert torch.equal(hits, logits.argmax(-1) == labels)
