"""A model's own positions leave with another scheme, and come back with uninstall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import InstallError
from tests.install.models import build, tokens


def outputs(model: Any, **given: Any) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(tokens(), **given)[0]
    return result


def test_llama_with_its_own_rotation_written_out_is_itself() -> None:
    model = attnlab.install(build("llama", AutoModelForCausalLM).double().eval(), "dot | softmax")
    before = outputs(model)
    attnlab.install(model, "dot | softmax | rope")
    torch.testing.assert_close(outputs(model), before, rtol=0, atol=1e-12)
    attnlab.install(model, "dot | softmax | nope")
    assert float((outputs(model) - before).abs().max()) > 1e-4


@pytest.mark.parametrize(("name", "weight"), [("gpt2", "wpe.weight"), ("bert", "position_embeddings.weight")])
def test_position_embeddings_are_unused_and_frozen_until_uninstalled(name: str, weight: str) -> None:
    model = build(name).eval()
    before = outputs(model)
    attnlab.install(model, "dot | softmax | alibi")
    changed = outputs(model)
    table = next(p for key, p in model.named_parameters() if key.endswith(weight))
    assert not table.requires_grad
    with torch.no_grad():
        table.add_(1.0)
        assert torch.equal(outputs(model), changed)
        table.sub_(1.0)
    attnlab.uninstall(model)
    assert table.requires_grad
    torch.testing.assert_close(outputs(model), before)


def test_a_saved_model_comes_back_without_its_own_positions(tmp_path: Path) -> None:
    model: Any = build("gpt2", AutoModelForCausalLM).eval()
    attnlab.install(model, "dot | softmax | relative(buckets=8, max_distance=16)")
    attnlab.save(model, tmp_path)
    loaded: Any = AutoModelForCausalLM.from_pretrained(tmp_path)
    loaded.eval()
    torch.testing.assert_close(outputs(loaded), outputs(model))


def test_generation_of_a_batch_padded_on_the_left_is_that_of_each_prompt() -> None:
    model = build("llama", AutoModelForCausalLM).eval()
    attnlab.install(model, "dot | softmax | rope(base=100) | window(4)")
    prompt = tokens(1)
    batch = torch.cat([torch.zeros_like(prompt[:, :3]), prompt], 1)
    mask = torch.tensor([[0] * 3 + [1] * prompt.shape[1]])
    options: dict[str, Any] = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}
    alone = model.generate(prompt, attention_mask=torch.ones_like(prompt), **options)
    padded = model.generate(batch, attention_mask=mask, **options)
    assert padded[0, 3:].tolist() == alone[0].tolist()


def test_a_model_whose_positions_are_not_found_is_refused() -> None:
    model = build("gpt2")
    model.places = model.wpe
    del model.wpe
    with pytest.raises(InstallError, match="does not find those of this GPT2Model"):
        attnlab.install(model, "dot | softmax | nope")
