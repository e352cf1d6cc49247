"""Initial values of learned parameters: drawn, a tensor, or a function of head, channel and layer, everywhere alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import attnlab
from attnlab.errors import ParameterError
from attnlab.mechanisms import Dims, Mechanism, Parameter, Params, Weights, masked_softmax, stage
from attnlab.mechanisms.parameter import check_parameters
from tests.install.models import build, tokens


def register() -> None:
    @stage("planned")
    @dataclass(frozen=True)
    class Planned(Weights):
        """Softmax of scores mixed over heads, with slopes, a number per channel and one that depends on the layer."""

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            heads = dims.num_heads
            return {
                "slope": Parameter((heads,), start=lambda head: 2.0 ** (-8 * (head + 1) / heads)),
                "mix": Parameter((heads, heads), start=torch.eye(heads)),
                "channel": Parameter((heads, dims.head_dim), start=lambda head, channel: head + channel / 100),
                "depth": Parameter((heads,), start=lambda head: 0.8 - 0.6 * 0.5**dims.layer),
            }

        def __call__(self, scores: Tensor, n: Tensor, p: Params, *, visible: Tensor) -> Tensor:
            factor = (p["slope"] + p["depth"] + p["channel"].mean(-1))[:, None, None]
            return masked_softmax(torch.einsum("bhqk,hg->bgqk", scores * factor, p["mix"]), visible)


LINE = "dot | planned"


@pytest.mark.usefixtures("own_stages")
def test_start_is_a_tensor_or_a_function_of_head_channel_and_layer(tmp_path: Path) -> None:
    register()
    layer = attnlab.Attention(LINE, num_heads=4, head_dim=8, layer=1)
    learned: dict[str, Any] = dict(layer.named_parameters())
    assert learned["planned_slope"].tolist() == [0.25, 0.0625, 0.015625, 0.00390625]
    assert torch.equal(learned["planned_mix"], torch.eye(4))
    assert torch.allclose(learned["planned_channel"][2], 2 + torch.arange(8) / 100)
    assert torch.allclose(learned["planned_depth"], torch.tensor(0.5))
    q, k, v = torch.randn(3, 1, 4, 10, 8)
    first = attnlab.Attention(LINE, num_heads=4, head_dim=8)
    assert torch.equal(attnlab.attend(q, k, v, LINE, causal=True), first(q, k, v, causal=True))

    model: Any = attnlab.install(build("gpt2"), LINE).eval()
    depths = [values[0].item() for name, values in model.named_parameters() if name.endswith("planned_depth")]
    assert depths[:2] == pytest.approx([0.2, 0.5])
    mixes = [values for name, values in model.named_parameters() if name.endswith("planned_mix")]
    assert mixes[0].data_ptr() != mixes[1].data_ptr()
    with torch.no_grad():
        mixes[0].mul_(0.5)
    attnlab.save(model, tmp_path)
    loaded: Any = attnlab.load(tmp_path)
    torch.testing.assert_close(loaded.eval()(tokens()).last_hidden_state, model(tokens()).last_hidden_state)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Parameter([4], 0, 1), "a tuple of positive integers, such as (dims.num_heads,), not [4]"),  # type: ignore[arg-type]
        (lambda: Parameter((0,), 0, 1), "not (0,)"),
        (lambda: Parameter((4,), torch.ones(4)), "give a tensor or a function as start="),  # type: ignore[arg-type]
        (lambda: Parameter((4,), float("nan"), 1), "low of a Parameter is a finite number, not nan"),
        (lambda: Parameter((4,), 1.0, 0.0), "low = 1.0 is above 0.0"),
        (lambda: Parameter((4,), 0, 1, start=torch.ones(4)), "low and high, or start; give one of the two"),
        (lambda: Parameter((4,), std=0.1, start=torch.ones(4)), "std, or start; give one of the two"),
        (lambda: Parameter((4,), 1.0, 1.0, std=0.1), "low and high, or std; give one of the two"),
        (lambda: Parameter((4,), std=-0.1), "std of a Parameter is a standard deviation, at least 0, not -0.1"),
        (lambda: Parameter((4,), std="0.1"), "std of a Parameter is a finite number, not '0.1'"),  # type: ignore[arg-type]
        (lambda: Parameter((4,), start=0.5), "give a number as low and high"),  # type: ignore[arg-type]
        (
            lambda: Parameter((4,), start=torch.ones(3)).draw("w", torch.Generator()),
            "'w' must have shape (4,), not (3,)",
        ),
        (
            lambda: Parameter((4, 2), start=lambda head: head).draw("w", torch.Generator()),
            "called with 2 tensors of integers",
        ),
        (
            lambda: Parameter((4,), start=lambda head: 1 / head).draw("w", torch.Generator()),
            "values that are not finite",
        ),
    ],
)
def test_what_is_no_parameter_is_refused(make: Any, words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ([Parameter((4,), 0, 1)], "must return a dict of Parameters by name, not a list"),
        (None, "must return a dict of Parameters by name, not a NoneType"),
        ({"w": nn.Parameter(torch.ones(4))}, "'w' of stage 'mine' is a torch.nn.Parameter; declare attnlab.Parameter("),
        ({"w": torch.ones(4)}, "'w' of stage 'mine' is a Tensor"),
        ({"w": Parameter((8, 4), 0, 1)}, "has shape (8, 4); the first axis must be the heads, here 4"),
        ({"w": Parameter((), 0, 1)}, "has shape (); the first axis must be the heads"),
        ({"my w": Parameter((4,), 0, 1)}, "its name must be a Python identifier"),
    ],
)
def test_what_a_stage_may_not_declare_is_refused(declared: Any, words: str) -> None:
    with pytest.raises(ParameterError) as caught:
        check_parameters("mine", declared, Dims(4, 8, 8))
    assert words in str(caught.value)


@pytest.mark.parametrize("low", [1.0, -1.0])
def test_one_bound_alone_is_refused(low: float) -> None:
    with pytest.raises(ParameterError, match=f"give both low and high, such as {low}, {low}"):
        Parameter((4,), low)
    assert Parameter((4,)).high == Parameter((4,), 0.0).high == 0


def test_a_draw_depends_on_the_generator_alone() -> None:
    parameter = Parameter((2, 3), -1.0, 1.0)
    first, same, other = (torch.Generator().manual_seed(seed) for seed in (1, 1, 2))
    drawn = parameter.draw("a", first)
    assert torch.equal(drawn, parameter.draw("b", same))
    assert not torch.equal(drawn, parameter.draw("a", other))
    assert Mechanism.parse("dot").parameters(2, 4, layer=3) == {}
