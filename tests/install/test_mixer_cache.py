"""The state of a mixer in a cache: the same outputs as without, also for beams; what cannot keep it is refused."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache

import attnlab
from attnlab.errors import InstallError, ShapeError
from attnlab.install.mixer_cache import StateLayer
from attnlab.mechanisms import mixer
from tests.install.models import build, padding, tokens
from tests.mixers import Stepping

pytestmark = pytest.mark.usefixtures("mixers")
LINES = [
    "mixer(stepping)",
    "mixer(stepping) @ 0; dot | softmax @ 1",
    "dot | softmax @ 0; mixer(stepping) @ 1",
    "mixer(stepping) @ 0; dot | softmax | forget @ 1",
]


@pytest.mark.parametrize("num_beams", [1, 3])
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_generation_with_a_cache_gives_the_same_tokens_as_without(kind: str, line: str, num_beams: int) -> None:
    model = attnlab.install(build(kind, AutoModelForCausalLM), line)
    options = {"attention_mask": padding("left"), "max_new_tokens": 6, "do_sample": False, "num_beams": num_beams}
    with_cache, without = (model.generate(tokens(), **options, use_cache=use_cache) for use_cache in (True, False))
    assert torch.equal(with_cache, without)


def test_the_audit_compares_the_step_with_the_forward() -> None:
    model = attnlab.install(build("gpt2", AutoModelForCausalLM), "mixer(stepping)")
    assert attnlab.audit(model, checks=["prefix"]).passed

    @mixer("forgetful")
    class Forgetful(Stepping):
        def step(self, x: torch.Tensor, state: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
            return super().step(x, None)

    assert not attnlab.audit(attnlab.install(model, "mixer(forgetful)"), checks=["prefix"]).passed


def test_a_cache_is_empty_and_dynamic_and_is_not_cut() -> None:
    model = attnlab.install(build("gpt2"), "mixer(stepping)")
    cache = DynamicCache()
    model(tokens(), past_key_values=cache, use_cache=True)
    assert cache.get_seq_length() == tokens().shape[1]
    with pytest.raises(InstallError, match="cannot be cut back"):
        cache.crop(3)
    cache.crop(100)
    static = StaticCache(config=model.config, max_cache_len=20)
    with pytest.raises(InstallError, match="in an empty dynamic cache, and this one is a StaticLayer"):
        model(tokens(), past_key_values=static, use_cache=True)
    filled = build("gpt2")(tokens(), use_cache=True).past_key_values
    with pytest.raises(InstallError, match="was filled without this mechanism"):
        model(tokens(), past_key_values=filled, use_cache=True)


def test_sequences_are_reordered_repeated_selected_and_forgotten() -> None:
    layer = StateLayer()
    layer.keep(torch.randn(2, 3, 4), torch.tensor([[1.0], [2.0]]))
    layer.reorder_cache(torch.tensor([1, 0]))
    assert layer.state is not None
    assert layer.state.flatten().tolist() == [2, 1]
    layer.batch_repeat_interleave(2)
    assert layer.state.flatten().tolist() == [2, 2, 1, 1]
    layer.batch_select_indices(torch.tensor([0, 3]))
    assert layer.state.flatten().tolist() == [2, 1]
    layer.reset()
    assert layer.state is None


def test_a_step_returns_its_output_and_a_state_for_each_sequence() -> None:
    @mixer("stateless")
    class Stateless(Stepping):
        def step(self, x: torch.Tensor, state: torch.Tensor | None) -> torch.Tensor:  # type: ignore[override]
            return x

    @mixer("pooled")
    class Pooled(Stepping):
        def step(self, x: torch.Tensor, state: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
            return x, x.mean(0)

    for name, problem in (("stateless", "must return a pair"), ("pooled", "the batch as its first axis, here 3")):
        model = attnlab.install(build("gpt2"), f"mixer({name})")
        with pytest.raises(ShapeError, match=problem):
            model(tokens(), use_cache=True)
