"""The loss computed in blocks and tiles is torch's loss of whole logits, and so are its gradients."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from attnlab.denormals import is_flushing
from attnlab.errors import TaskError
from attnlab.install import exponentials
from attnlab.kernels.cpu import native
from attnlab.kernels.measure import peak_memory
from attnlab.tasks import crossentropy
from attnlab.tasks.crossentropy import compute_losses_and_hits, compute_summed_loss

MODULE = "attnlab.tasks.crossentropy"


@pytest.fixture(params=["torch", "compiled"], autouse=True)
def _exponentials(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute every exponential by torch, or by the compiled loops."""
    if request.param == "compiled" and native.explain_missing() is not None:
        pytest.skip("needs the compiled loops")
    monkeypatch.setattr(exponentials, "COMPILED_FROM", 0 if request.param == "compiled" else 2**62)


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make several blocks and tiles of a small problem, the last ones smaller."""
    monkeypatch.setattr(f"{MODULE}.CHUNK", 90)
    monkeypatch.setattr(f"{MODULE}.TILE_BYTES", 128)
    monkeypatch.setattr(f"{MODULE}.cache_bytes", lambda level: None)


def make_inputs(num_rows: int, vocab: int, dtype: torch.dtype, has_bias: bool, scale: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(num_rows * vocab)
    shapes = [(num_rows, 6), (vocab, 6), *([(vocab,)] if has_bias else [])]
    made = [scale * torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes]
    return [tensor.to(dtype).requires_grad_() for tensor in made]


def compute_plainly(
    inputs: list[Tensor], labels: Tensor, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, ...]:  # fmt: skip
    """Return the loss and its gradients from whole logits."""
    exact = [tensor.detach().to(dtype).requires_grad_() for tensor in inputs]
    loss = F.cross_entropy(F.linear(*exact), labels, reduction="sum")
    return loss.detach(), *torch.autograd.grad(3 * loss, exact)


def compute_in_tiles(inputs: list[Tensor], labels: Tensor) -> tuple[Tensor, ...]:
    states, weight, bias = (*inputs, None)[:3]
    assert states is not None
    assert weight is not None
    loss = compute_summed_loss(states, weight, bias, labels)
    return loss.detach(), *torch.autograd.grad(3 * loss, inputs)


def assert_close(actual: tuple[Tensor, ...], expected: tuple[Tensor, ...], error: float) -> None:
    for one, other in zip(actual, expected, strict=True):
        assert bool(one.isfinite().all())
        assert float((one - other).abs().max()) <= error * max(1.0, float(other.abs().max()))


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-13), (torch.float32, 2e-6)])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(("num_rows", "vocab"), [(23, 11), (7, 41), (1, 1), (1, 97), (29, 2), (5, 128)])
def test_loss_and_gradients_are_those_of_whole_logits(
    num_rows: int, vocab: int, has_bias: bool, dtype: torch.dtype, error: float
) -> None:
    inputs = make_inputs(num_rows, vocab, dtype, has_bias)
    labels = torch.randint(vocab, (num_rows,), generator=torch.Generator().manual_seed(0))
    assert_close(compute_in_tiles(inputs, labels), compute_plainly(inputs, labels), error)


@pytest.mark.usefixtures("small_tiles")
def test_large_logits_neither_overflow_nor_vanish() -> None:
    inputs = make_inputs(13, 37, torch.float32, has_bias=True, scale=30.0)
    labels = torch.arange(13) * 2
    expected = compute_plainly(inputs, labels)
    plain = compute_plainly(inputs, labels, torch.float32)
    for one, other, exact in zip(compute_in_tiles(inputs, labels), plain, expected, strict=True):
        assert float((one - exact).abs().max()) <= 4 * float((other - exact).abs().max()) + 1e-6 * exact.abs().max()


@pytest.mark.usefixtures("small_tiles")
def test_tiny_probabilities_are_rounded_to_0_in_the_loss_alone() -> None:
    states, weight = torch.full((2, 1), 1.0, requires_grad=True), torch.tensor([[0.0], [-95.0], [-200.0]])
    compute_summed_loss(states, weight, None, torch.tensor([0, 0])).backward()
    assert states.grad is not None
    assert states.grad.tolist() == [[0.0], [0.0]]
    assert not is_flushing()


def test_a_token_may_have_a_bias_of_minus_infinity() -> None:
    states, weight, bias = make_inputs(9, 31, torch.float64, has_bias=True)
    with torch.no_grad():
        bias[:20] = -torch.inf
    labels = torch.arange(9) + 20
    actual = compute_in_tiles([states, weight, bias], labels)
    assert_close(actual, compute_plainly([states, weight, bias], labels), 1e-13)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
@pytest.mark.parametrize("row", [0, 40])
def test_a_weight_that_is_not_finite_shows_in_the_loss(number: float, row: int) -> None:
    states, weight = make_inputs(3, 41, torch.float32, has_bias=False)
    with torch.no_grad():
        weight[row, 0] = number
        states.abs_()
    assert not bool(compute_summed_loss(states, weight, None, torch.tensor([1, 2, 3])).isfinite())


def test_a_certain_prediction_has_a_small_loss_and_an_exact_gradient() -> None:
    states, weight = make_inputs(4, 33, torch.float32, has_bias=False)
    bias = torch.zeros(33)
    bias[7] = 30.0
    inputs = [states, weight, bias.requires_grad_()]
    labels = torch.full((4,), 7)
    actual, expected = compute_in_tiles(inputs, labels), compute_plainly(inputs, labels)
    assert actual[0].item() == pytest.approx(expected[0].item(), abs=1e-6)
    others = torch.arange(33) != 7
    torch.testing.assert_close(actual[3][others].double(), expected[3][others], rtol=1e-5, atol=0.0)


@pytest.mark.usefixtures("small_tiles")
def test_no_label_is_no_loss_and_no_gradient() -> None:
    inputs = make_inputs(0, 11, torch.float32, has_bias=True)
    loss, *gradients = compute_in_tiles(inputs, torch.zeros(0, dtype=torch.long))
    assert loss.item() == 0.0
    assert all(not bool(gradient.any()) for gradient in gradients)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("label", [-100, 11])
def test_a_label_outside_the_vocabulary_is_an_error(label: int) -> None:
    states, weight = make_inputs(3, 11, torch.float32, has_bias=False)
    with pytest.raises(TaskError, match=rf"labels go from .*{label}.* vocabulary from 0 to 10;"):
        compute_summed_loss(states, weight, None, torch.tensor([0, label, 2]))


@pytest.mark.usefixtures("small_tiles")
def test_tied_weights_receive_both_gradients() -> None:
    weight = make_inputs(1, 19, torch.float64, has_bias=False)[1]
    tokens, labels = torch.randint(19, (2, 14), generator=torch.Generator().manual_seed(0))
    tiled = torch.autograd.grad(compute_summed_loss(weight[tokens].tanh(), weight, None, labels), weight)
    plain = torch.autograd.grad(F.cross_entropy(weight[tokens].tanh() @ weight.t(), labels, reduction="sum"), weight)
    assert_close(tiled, plain, 1e-13)


@pytest.mark.usefixtures("small_tiles")
@pytest.mark.parametrize("needed", [0, 1, 2])
def test_only_the_gradients_that_are_needed_are_computed(needed: int) -> None:
    inputs = make_inputs(9, 31, torch.float64, has_bias=True)
    labels = torch.randint(31, (9,), generator=torch.Generator().manual_seed(0))
    expected = compute_plainly(inputs, labels)[1 + needed]
    for number, tensor in enumerate(inputs):
        tensor.requires_grad_(number == needed)
    states, weight, bias = inputs
    loss = compute_summed_loss(states, weight, bias, labels)
    assert_close(torch.autograd.grad(3 * loss, inputs[needed]), (expected,), 1e-13)


@pytest.mark.usefixtures("small_tiles")
def test_under_autocast_products_are_in_bf16_and_sums_in_fp32() -> None:
    inputs = make_inputs(23, 41, torch.float32, has_bias=True)
    labels = torch.randint(41, (23,), generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        actual = compute_in_tiles(inputs, labels)
    assert [tensor.dtype for tensor in actual] == [torch.float32] * 4
    assert_close(actual, compute_plainly(inputs, labels), 2e-2)


def test_the_work_space_is_one_block_of_logits() -> None:
    vocab, num_rows = 20011, 601
    states = torch.randn(num_rows, 8, requires_grad=True)
    weight = torch.randn(vocab, 8, requires_grad=True)
    labels = torch.randint(vocab, (num_rows,), generator=torch.Generator().manual_seed(0))
    compute_in_tiles([states, weight], labels)
    used = peak_memory(lambda: compute_in_tiles([states, weight], labels))
    gradients = 4 * 2 * (weight.numel() + states.numel())  # as computed, and multiplied by the factor
    assert used <= 1.1 * (4 * crossentropy.CHUNK + gradients)


@pytest.mark.usefixtures("small_tiles")
def test_losses_and_hits_are_those_of_whole_logits() -> None:
    states, weight, bias = make_inputs(23, 11, torch.float64, has_bias=True)
    labels = torch.randint(11, (23,), generator=torch.Generator().manual_seed(0))
    nats, hits = compute_losses_and_hits(states, weight, bias, labels)
    logits = F.linear(states, weight, bias)
    torch.testing.assert_close(nats, F.cross_entropy(logits, labels, reduction="none"))
    assert torch.equal(hits, logits.argmax(-1) == labels)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_losses_of_many_logits_are_as_exact_as_those_in_fp64(dtype: torch.dtype) -> None:
    states, weight, bias = (tensor.detach() for tensor in make_inputs(300, 20_000, torch.float32, has_bias=True))
    labels = torch.randint(20_000, (300,), generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
        nats, hits = compute_losses_and_hits(states, weight, bias, labels)
        logits = F.linear(states, weight, bias)
    exact = F.cross_entropy(F.linear(states.double(), weight.double(), bias.double()), labels, reduction="none")
    error = (F.cross_entropy(logits.double(), labels, reduction="none") - exact).abs().max()
    assert nats.dtype == torch.float64
    rounding = torch.finfo(torch.float32).eps * exact.max()  # of a logit and of the logarithm of a sum
    assert (nats - exact).abs().max() <= 1.5 * error + rounding
    if dtype == torch.float32:
        assert torch.equal(hits, logits.argmax(-1) == labels)
