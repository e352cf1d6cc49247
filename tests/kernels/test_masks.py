"""A user's mask may request any combination of inputs, differ between heads, and is computed alike by every kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import attnlab
from attnlab.errors import ShapeError
from attnlab.install import set_prefix
from attnlab.kernels.attend import attend, weights
from attnlab.mechanisms import Mask, Mechanism, Positions, argument, stage
from attnlab.mechanisms.declaration import NEEDS
from tests.install.models import build, tokens

pytestmark = pytest.mark.usefixtures("own_stages")

COUNTS: dict[str, Callable[..., int]] = {
    "num_heads": lambda given: given["num_heads"],
    "scores": lambda given: given["scores"].shape[1],
    "visible": lambda given: given["visible"].shape[1],
}
"""How a mask may count heads."""
SUBSETS = [("positions", *more) for size in (1, 2, 3) for more in itertools.combinations(COUNTS, size)]


def show(distances: Tensor, num_heads: int) -> Tensor:
    """Return the pairs of head h that are less than 2·2^h apart."""
    return distances.abs() < 2 * 2 ** torch.arange(num_heads)[:, None, None]


def declare(inputs: tuple[str, ...], is_required: bool = True) -> None:
    """Register the mask 'by_head', whose call requests these inputs."""
    scope: dict[str, Any] = {"show": show, "counts": [COUNTS[name] for name in inputs if name in COUNTS]}
    given = ", ".join(name if is_required else f"{name}=None" for name in inputs)
    exec(
        f"def __call__(self, *, {given}):\n given = dict(locals())\n"
        " (num_heads,) = {count(given) for count in counts}\n return show(positions.distances, num_heads)",
        scope,
    )
    body = {"__call__": scope["__call__"], "__doc__": "|i − j| < 2·2^h in head h."}
    stage("by_head")(dataclass(frozen=True)(type("ByHead", (Mask,), body)))


# An optional `visible` is None if all pairs are visible.
CASES = [
    (inputs, is_required)
    for inputs in SUBSETS
    for is_required in (True, False)
    if is_required or "visible" not in inputs
]


@pytest.mark.parametrize(("inputs", "is_required"), CASES)
def test_any_combination_of_inputs_is_given_without_passing_positions(
    inputs: tuple[str, ...], is_required: bool
) -> None:
    assert {*COUNTS, "positions"} == {*NEEDS["mask"]}
    declare(inputs, is_required)
    line, length = "dot | softmax | by_head", 40
    q, k, v = torch.randn(3, 2, 4, length, 8, dtype=torch.float64)
    places = torch.arange(length)
    for causal, kernel in itertools.product((True, False), ("auto", "rowwise", "reference")):
        pairs = show(places[:, None] - places, 4) & ((places[:, None] >= places) | torch.tensor(not causal))
        expected = (q @ k.mT / 8**0.5).masked_fill(~pairs, -torch.inf).softmax(-1)
        torch.testing.assert_close(attend(q, k, v, line, causal=causal, kernel=kernel), expected @ v)
        torch.testing.assert_close(weights(q, k, line, causal=causal), expected)


@pytest.mark.parametrize("inputs", [("positions", "num_heads"), ("positions", "scores"), ("positions", "visible")])
def test_it_is_sound_in_audits_and_models_whatever_it_requests(inputs: tuple[str, ...]) -> None:
    declare(inputs)
    report = attnlab.audit("dot | softmax | by_head")
    assert report.passed, report
    model = attnlab.install(build("gpt2"), "dot | softmax | by_head")
    assert attnlab.audit(model).passed
    set_prefix(model, 3, seed=0)
    recorded = model(tokens(1), output_attentions=True).attentions[0]
    assert bool((recorded[..., :3] > 0).all())  # every query sees a prefix


@pytest.mark.parametrize(
    ("inputs", "advice"), [("scores", "request `positions` and `num_heads`"), ("num_heads", "find_reach")]
)
def test_the_explanation_says_what_would_be_faster(inputs: str, advice: str) -> None:
    declare(("positions", inputs))
    explanation = attnlab.explain("dot | softmax | by_head", 512)
    assert explanation.kernel == ("rowwise" if inputs == "scores" else "sdpa")
    assert advice in explanation.advice[0]


def declare_banded(reach_of: Callable[[int], int]) -> None:
    """Register the mask 'by_head' with a reach that depends on the number of heads."""

    @stage("by_head")
    @dataclass(frozen=True)
    class ByHead(Mask):
        """|i − j| < base·2^h in head h."""

        is_by_distance = True

        base: int = argument(2, at_least=1)

        def find_reach(self, num_heads: int) -> int:
            return reach_of(self.base * 2 ** (num_heads - 1))

        def __call__(self, *, positions: Positions, num_heads: int) -> Tensor:
            return positions.distances.abs() < self.base * 2 ** torch.arange(num_heads)[:, None, None]


def test_a_reach_that_depends_on_the_number_of_heads_gets_the_banded_kernel() -> None:
    declare_banded(lambda reach: reach)
    assert Mechanism.parse("dot | softmax | by_head | window(9)").find_reach(2) == 4
    explanation = attnlab.explain("dot | softmax | by_head", 512, num_heads=4, causal=True)
    assert (explanation.kernel, explanation.advice) == ("banded", ())
    assert attnlab.audit("dot | softmax | by_head").passed
    q, k, v = torch.randn(3, 1, 4, 200, 8, dtype=torch.float64)
    banded, exact = (
        attend(q, k, v, "dot | softmax | by_head", causal=True, kernel=name) for name in ("banded", "reference")
    )
    torch.testing.assert_close(banded, exact)


def test_a_reach_that_is_too_short_is_found() -> None:
    declare_banded(lambda reach: reach - 1)
    finding = attnlab.audit("dot | softmax | by_head", checks=["equivalences"]).findings["equivalences"]
    assert not finding.passed


def test_a_fixed_number_of_heads_is_refused_with_the_way_out() -> None:
    @stage("by_head")
    @dataclass(frozen=True)
    class FourHeads(Mask):
        """|i − j| < 2·2^h in each of four heads."""

        def __call__(self, *, positions: Positions) -> Tensor:
            return show(positions.distances, 4)

    q = torch.randn(1, 2, 6, 8)
    with pytest.raises(ShapeError, match="number of heads is not always 4: request `num_heads`"):
        attend(q, q, q, "dot | softmax | by_head")
