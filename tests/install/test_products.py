"""Inside `low_products` linear layers multiply in bf16, whatever a mechanism or an adapter does around them; after it
there is no trace. How far results may be off is measured on the same model in fp64 with factors rounded to bf16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import peft
import pytest
import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

import attnlab
from attnlab.errors import InstallError
from attnlab.install import products
from attnlab.install.products import LowProduct, Switch, low_products
from attnlab.kernels.amx import has_tiles
from tests.install.models import build, padding, tokens, twin, with_loss

pytestmark = pytest.mark.skipif(not has_tiles()[0], reason=has_tiles()[1])

WIDE: dict[str, dict[str, Any]] = {
    "bert": {"hidden_size": 64, "intermediate_size": 96},
    "llama": {"hidden_size": 64, "intermediate_size": 96},
    "gpt2": {"n_embd": 64},
}
"""The tiny models, wide enough for bf16 to pay."""

LINES = [
    "dot | softmax",
    "dot | softmax | bypass(alpha=0.5)",
    "dot | softmax | value_residual",
    "dot | softmax | share(qk)",
    "dot | softmax | share(qkv) | bypass(alpha=0.5)",
]


def model_of(name: str, line: str | None = None) -> Any:
    model = with_loss(name, **WIDE[name])
    return model if line is None else attnlab.install(model, line)


def with_lora(name: str) -> Any:
    target = "c_attn" if name == "gpt2" else "query"
    config = peft.LoraConfig(
        target_modules=[target], r=4, fan_in_fan_out=name == "gpt2", init_lora_weights=False
    )  # fmt: skip
    torch.manual_seed(0)
    return peft.get_peft_model(model_of(name), config)


def outcome(model: Any) -> dict[str, Tensor]:
    """Return the logits and all gradients of a loss."""
    model.zero_grad(set_to_none=True)
    out = model(input_ids=tokens(), attention_mask=padding("right"), labels=tokens())
    out.loss.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    return {"logits": out.logits.detach(), **found}


class Rounded(torch.autograd.Function):
    """A linear layer in fp64 whose products have factors rounded to bf16."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return low(x) @ low(weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        rows, slopes = x.reshape(-1, x.shape[-1]), grads[0].reshape(-1, weight.shape[1])
        return low(grads[0]) @ low(weight).t(), low(rows).t() @ low(slopes)


def low(x: Tensor) -> Tensor:
    return x.bfloat16().double()


class Emulated(LowProduct):
    """What a low product is to give, in fp64."""

    def __call__(self, x: Tensor) -> Tensor:
        weight, bias = products.parameters_of(self.module)
        y: Tensor = Rounded.apply(x, weight if isinstance(self.module, Conv1D) else weight.t())  # type: ignore[no-untyped-call]
        return y if bias is None else y + bias


def assert_within_budget(found: dict[str, Tensor], model: Any) -> None:
    """Hold results against fp64: they may be off twice as far as fp64 with rounded factors is."""
    precise, emulated = twin(model).double(), twin(model)
    for module in products.eligible(emulated):
        Emulated(module, Switch())
    exact, budget = outcome(precise), outcome(emulated.double())
    assert found.keys() == exact.keys()
    whole = torch.stack([value.norm() for name, value in exact.items() if name != "logits"]).norm()
    for name, value in found.items():
        # What fp32 is off by where nothing is rounded, or where a gradient is 0 but for rounding (a key's bias).
        slack = 1e-6 * (exact[name].norm() if name == "logits" else whole)
        assert (value - exact[name]).norm() <= 2 * (budget[name] - exact[name]).norm() + slack, name


@pytest.mark.parametrize(
    ("name", "make"), [*((name, model_of) for name in WIDE), ("bert", with_lora), ("gpt2", with_lora)]
)
def test_results_are_those_of_bf16_inside_and_untouched_after(name: str, make: Callable[[str], Any]) -> None:
    model = make(name)
    before, keys = outcome(model), list(model.state_dict())
    with low_products(model) as num_layers:
        found = outcome(model)
        assert list(model.state_dict()) == keys
    assert num_layers > 0
    assert_within_budget(found, model)
    assert not torch.equal(found["logits"], before["logits"])
    after = outcome(model)
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert untouched(model)


def untouched(model: nn.Module) -> bool:
    return not any("forward" in vars(module) for module in model.modules())


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_mechanisms_act_on_low_products(name: str, line: str) -> None:
    model = model_of(name, line)
    before = outcome(model)
    with low_products(model) as num_layers:
        found = outcome(model)
    with low_products(model_of(name)) as num_plain:
        assert num_layers == num_plain
    assert_within_budget(found, model)
    after = outcome(model)
    assert all(torch.equal(after[key], value) for key, value in before.items())
    attnlab.uninstall(model)
    assert untouched(model)


@pytest.mark.parametrize("line", LINES)
def test_a_mechanism_may_come_and_go_inside(line: str) -> None:
    model, installed = model_of("gpt2"), model_of("gpt2", line)
    with low_products(installed):
        expected = outcome(installed)["logits"]
    with low_products(model):
        attnlab.install(model, line)
        assert torch.equal(outcome(model)["logits"], expected)
    assert torch.equal(outcome(model)["logits"], outcome(installed)["logits"])
    with low_products(model):
        attnlab.uninstall(model)
    assert untouched(model)


@pytest.mark.parametrize("line", [None, *LINES])
def test_a_copy_made_inside_computes_in_fp32_outside(line: str | None) -> None:
    model = model_of("gpt2", line)
    with low_products(model):
        copy = twin(model)
        assert torch.equal(outcome(copy)["logits"], outcome(model)["logits"])
    torch.testing.assert_close(outcome(copy)["logits"], outcome(model)["logits"], rtol=1e-6, atol=1e-6)
    with low_products(copy), low_products(model):
        assert torch.equal(outcome(copy)["logits"], outcome(model)["logits"])


def test_an_error_inside_leaves_no_trace() -> None:
    model = model_of("bert")

    def fail() -> None:
        with low_products(model):
            raise ArithmeticError

    with pytest.raises(ArithmeticError):
        fail()
    assert untouched(model)


def test_once_is_enough() -> None:
    model = model_of("bert")
    with low_products(model) as num_layers:
        once = outcome(model)["logits"]
        with low_products(model) as num_more:
            assert torch.equal(outcome(model)["logits"], once)
        assert torch.equal(outcome(model)["logits"], once)
    assert num_layers > 0
    assert num_more == 0


def test_small_layers_heads_other_formats_and_wrapped_layers_stay_as_they_are() -> None:
    with low_products(build("bert")) as num_small:
        assert num_small == 0
    with low_products(model_of("bert").double()) as num_double:
        assert num_double == 0
    model = model_of("gpt2")
    wrapped = model.transformer.h[0].mlp.c_fc
    own = wrapped.forward
    wrapped.forward = lambda x: own(x)
    wrapper = wrapped.forward
    with low_products(model):
        assert "forward" not in vars(model.lm_head)
        assert wrapped.forward is wrapper
        assert "forward" in vars(model.transformer.h[1].mlp.c_fc)
    assert wrapped.forward is wrapper


def test_a_row_has_the_same_result_in_any_batch() -> None:
    layer = nn.Sequential(nn.Linear(64, 64))
    x = torch.randn(300, 64)
    with low_products(layer), torch.no_grad():
        assert torch.equal(layer(x)[7:8], layer(x[7:8]))


def test_without_tiles_it_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_tiles", lambda: (False, "no bf16 tiles: the processor has no amx_tile"))
    with (
        pytest.raises(InstallError, match="the processor has no amx_tile; compute in fp32"),
        low_products(nn.Linear(1, 1)),
    ):
        pass


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # torch's own, when it traces
def test_compiled_code_steps_around_tiles() -> None:
    torch.compiler.reset()
    model = model_of("gpt2")
    model.config.use_cache = False
    with low_products(model):
        expected = outcome(model)["logits"]
        fast: Any = torch.compile(model, backend="aot_eager")
        found = fast(input_ids=tokens(), attention_mask=padding("right")).logits
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
