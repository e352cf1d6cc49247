"""Stages that need token ids in models: from input_ids, in caches, and where they are refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import InstallError
from attnlab.install import Layer
from tests.install.models import VOCABULARY, build, calm, tokens, with_loss

LINE = "dot | softmax | value_embedding"


def started(kind: str, line: str = LINE) -> Any:
    """Return a model whose tables are large enough to change its outputs."""
    model: Any = attnlab.install(build(kind), line)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "value_embedding_table" in name:
                parameter.mul_(100)
    return model.eval()


@pytest.mark.parametrize(
    "kind", ["gpt2", "llama", "llama grouped", "bert", "roberta", "distilbert", "phi3 fused", "opt"]
)
def test_each_value_gets_the_row_of_its_token(kind: str) -> None:
    model = started(kind)
    layers: list[Any] = [module for _, module in model.named_modules() if isinstance(module, Layer)]
    assert {layer.value_embedding_table.shape[1] for layer in layers} == {VOCABULARY}
    ids = tokens()
    changed = model(ids)[0]
    assert torch.equal(model(input_ids=ids)[0], changed)
    with torch.no_grad():
        for layer in layers:
            layer.value_embedding_scale.zero_()
    plain = model(ids)[0]
    assert not torch.allclose(changed, plain, atol=1e-4)
    torch.testing.assert_close(attnlab.uninstall(model)(ids)[0], plain)


def test_one_layer_of_bert_computes_the_equation() -> None:
    model = started("bert")
    ids = tokens()
    held: dict[str, Any] = {}
    module = model.encoder.layer[1].attention.self
    module.value.register_forward_hook(lambda _, args, out: held.update(x=args[0], v=out))
    model(ids)
    layer, x = module.attnlab, held["x"]
    bare = torch.nn.functional.linear(x, module.value.weight, module.value.bias)
    rows = (layer.value_embedding_scale[:, None, None] * layer.value_embedding_table)[:, ids].permute(1, 2, 0, 3)
    torch.testing.assert_close(held["v"], bare + rows.flatten(2))


def test_only_the_named_layers_have_a_table() -> None:
    model = started("gpt2", "dot | softmax | value_embedding(layers=1)")
    names = [name for name, _ in model.named_parameters() if "value_embedding" in name]
    assert names == ["h.1.attn.attnlab.value_embedding_table", "h.1.attn.attnlab.value_embedding_scale"]
    model(tokens())


@pytest.mark.parametrize("line", [LINE, f"{LINE} | shift(keys)", f"{LINE} | value_residual"])
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_cache_gives_the_outputs_of_the_whole_sequence(kind: str, line: str) -> None:
    model, ids = started(kind, line), tokens()
    whole = model(ids, use_cache=False).last_hidden_state
    first = model(ids[:, :4], use_cache=True)
    second = model(ids[:, 4:], past_key_values=first.past_key_values, use_cache=True)
    parts = torch.cat([first.last_hidden_state, second.last_hidden_state], 1)
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=1e-5)


def test_inputs_embeds_are_refused_and_the_next_pass_is_clean() -> None:
    model = started("gpt2")
    expected = model(tokens())[0]
    with pytest.raises(InstallError, match=r"GPT2Model was called with inputs_embeds, .*pass input_ids"):
        model(inputs_embeds=model.wte(tokens()))
    assert torch.equal(model(tokens())[0], expected)


def test_a_layer_called_by_itself_is_refused() -> None:
    model = started("bert")
    with pytest.raises(InstallError, match="called by itself, but 'value_embedding' needs the token ids"):
        model.encoder.layer[1](torch.randn(1, 3, 32))


def test_a_vocabulary_that_was_resized_is_refused_until_the_mechanism_is_installed_again(tmp_path: Path) -> None:
    model: Any = attnlab.install(with_loss("gpt2").eval(), LINE)
    model.resize_token_embeddings(VOCABULARY + 8)
    said = rf"has {VOCABULARY + 8} tokens since resize_token_embeddings.*have {VOCABULARY}; install the mechanism again"
    with pytest.raises(InstallError, match=said):
        model(tokens())
    with pytest.raises(InstallError, match=said):
        model.save_pretrained(tmp_path / "refused")
    attnlab.install(model, LINE)
    model(torch.full((1, 3), VOCABULARY + 7))
    attnlab.save(model, tmp_path / "saved")
    attnlab.load(tmp_path / "saved")


def test_gradient_checkpointing_is_refused() -> None:
    model = attnlab.install(with_loss("gpt2", use_cache=False).train(), LINE)
    model.gradient_checkpointing_enable()
    with pytest.raises(InstallError, match=r"value_embedding.*gradient_checkpointing_disable"):
        model(tokens())
    model.eval()(tokens())


def test_models_without_a_vocabulary_or_with_cross_attention_are_refused() -> None:
    with pytest.raises(InstallError, match="cross-attention"):
        attnlab.install(build("bart"), LINE)
    from transformers import ViTConfig, ViTModel

    vit = ViTModel(ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32))
    with pytest.raises(InstallError, match="has no vocab_size; use a model that takes tokens"):
        attnlab.install(vit, LINE)


def test_saved_loaded_and_copied_models_compute_the_same(tmp_path: Path) -> None:
    model: Any = calm(attnlab.install(build("llama", AutoModelForCausalLM), LINE))
    expected = model(tokens()).logits
    attnlab.save(model, tmp_path)
    assert torch.equal(attnlab.load(tmp_path, LINE)(tokens()).logits, expected)
    assert torch.equal(copy.deepcopy(model)(tokens()).logits, expected)
