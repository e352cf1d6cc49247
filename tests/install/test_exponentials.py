"""Exponentials of logits by torch and by compiled loops: the same up to rounding; missing loops are said."""

import pytest
import torch

from attnlab.errors import AttnlabWarning
from attnlab.install.exponentials import COMPILED_FROM, choose_exponentials, exponentiate, exponentiate_by_loops
from attnlab.kernels.cpu import native
from attnlab.kernels.cpu.native import Loops

needs_loops = pytest.mark.skipif(native.explain_missing() is not None, reason="needs the compiled loops")


@needs_loops
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 7, 16, 33, 1365])
def test_loops_are_as_exact_as_torch(width: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(width)
    logits = 20 * torch.randn(37, width, generator=generator, dtype=torch.float64)
    logits[1, 0] = -torch.inf
    shift, total = torch.randn(37, generator=generator), torch.rand(37, generator=generator)
    exact = [tensor.to(dtype).to(torch.float64, copy=True) for tensor in (logits, shift, total)]
    exact_logits = exact[0]
    exact_shift, exact_total = exponentiate(*exact)
    eps = torch.finfo(dtype).eps
    for compute in (exponentiate, exponentiate_by_loops):
        made = logits.to(dtype, copy=True)
        new_shift, new_total = compute(made, shift.to(dtype), total.to(dtype))
        assert torch.equal(new_shift.double(), exact_shift)
        # A logit minus its shift is rounded, so its exponential is wrong by as much, and by a few units more.
        bound = (4 + (logits - exact_shift[:, None]).abs().clamp(max=100)) * eps
        assert bool(((made - exact_logits).abs() <= bound * exact_logits + 1e-37).all())
        assert bool(((new_total - exact_total).abs() <= 100 * eps * exact_total).all())


@needs_loops
@pytest.mark.parametrize("number", [torch.nan, -torch.nan, torch.inf])
@pytest.mark.parametrize("at", [0, 15, 16, 20])
def test_a_row_that_is_not_finite_has_no_total(number: float, at: int) -> None:
    logits = torch.zeros(2, 21)
    logits[1, at] = number
    _, total = exponentiate_by_loops(logits, torch.zeros(2), torch.zeros(2))
    assert total.isnan().tolist() == [False, True]


def test_few_logits_do_not_look_for_the_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "load_loops", lambda: pytest.fail("the loops were looked for"))
    assert choose_exponentials("cpu", COMPILED_FROM - 1) is exponentiate
    assert choose_exponentials("cuda", COMPILED_FROM) is exponentiate


def test_missing_loops_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    native.warn_missing.cache_clear()
    monkeypatch.setattr(native, "load_loops", lambda: (None, Loops(False, "none", "no C++ compiler found")))
    with pytest.warns(AttnlabWarning, match=r"no C\+\+ compiler found.*the loss of large vocabularies"):
        assert choose_exponentials("cpu", COMPILED_FROM) is exponentiate
    native.warn_missing.cache_clear()
