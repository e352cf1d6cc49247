"""A kernel agrees where it is as exact as its precision allows, and is caught where it is not."""

from typing import Any

import pytest
from torch import Tensor

from attnlab.kernels import attend
from attnlab.kernels.comparison import Setting
from attnlab.mechanisms import Mechanism
from attnlab.reports.catalog import agreement
from attnlab.reports.catalog.agreement import Agreement, measure_agreement

SETTING = Setting(num_heads=2, head_dim=8)


@pytest.mark.parametrize(
    "line", ["dot | softmax", "additive | softmax", "dot | argmax", "cosine | identity(divide=learned)"]
)
def test_the_kernels_agree(line: str) -> None:
    found = measure_agreement(Mechanism.parse(line), 33, SETTING)
    assert found.holds
    assert 0 < found.error < 1e-5


@pytest.mark.parametrize("wrong", ["output", "gradient"])
def test_a_kernel_that_is_off_by_a_little_is_caught(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def slightly_off(q: Tensor, *rest: Any, kernel: str, **how: Any) -> Tensor:
        out = attend(q, *rest, kernel=kernel, **how)
        if kernel == "reference":
            return out
        return out * 1.0001 if wrong == "output" else out + (q - q.detach()) * 1e-4

    monkeypatch.setattr(agreement, "attend", slightly_off)
    found = measure_agreement(Mechanism.parse("dot | relu(divide=n)"), 33, SETTING)
    assert not found.holds
    assert found.error > 10 * found.reference_error


def test_the_reference_sets_the_bound() -> None:
    assert Agreement(error=2e-6, reference_error=1e-6, rounding=0).holds
    assert not Agreement(error=4e-6, reference_error=1e-6, rounding=0).holds


@pytest.mark.parametrize("line", ["token_dropout(0.5)", "bypass(alpha=0.5)", "value_residual"])
def test_every_stage_acts_while_it_is_checked(line: str) -> None:
    plain, found = (
        agreement.compute_gradients(Mechanism.parse(text), 33, SETTING, "auto")[0] for text in ("dot", f"dot | {line}")
    )
    assert (plain - found).abs().max() > 0.01
    assert measure_agreement(Mechanism.parse(f"dot | {line}"), 33, SETTING).holds
