"""The weights of a forward pass: those of transformers or of the mechanism, and a model that is left as it was."""

from __future__ import annotations

import pytest
import torch

import attnlab
from attnlab.errors import InstallError, RequestError
from attnlab.heads.recording import find_model, record_weights
from attnlab.install import set_prefix
from tests.install.models import HEADS, build

IDS = torch.tensor([[5, 6, 7, 8, 9]])


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama grouped", "roberta", "distilbert", "bloom"])
def test_plain_weights_are_those_of_eager_attention_and_the_model_is_left_alone(name: str) -> None:
    model = build(name)
    if name != "bloom":
        model.set_attn_implementation("sdpa")
    model.train()
    model.get_input_embeddings().eval()
    weights, source, _ = record_weights(model, {"input_ids": IDS})
    assert weights.shape == (2, HEADS, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, 5))
    assert "no mechanism is installed" in source
    assert ("in place of 'sdpa'" in source) == (name != "bloom")
    assert model.training
    assert not model.get_input_embeddings().training
    assert model.config._attn_implementation == ("eager" if name == "bloom" else "sdpa")
    is_causal = not weights[..., ~torch.ones(5, 5).tril().bool()].any()
    assert is_causal == (name not in ("bert", "roberta", "distilbert"))


def test_weights_of_a_mechanism_are_its_own() -> None:
    model = attnlab.install(build("gpt2"), "dot | identity")
    weights, source, _ = record_weights(model, {"input_ids": IDS})
    assert "dot | identity" in source
    assert (weights < 0).any()


def test_a_prefix_is_keys_without_queries() -> None:
    model = attnlab.install(build("gpt2"), "dot | softmax")
    set_prefix(model, 3, seed=0)
    weights, _, _ = record_weights(model, {"input_ids": IDS})
    assert weights.shape == (2, HEADS, 5, 8)


@pytest.mark.usefixtures("mixers")
@pytest.mark.parametrize("name", ["gpt2", "bert", "llama grouped"])
def test_a_layer_with_a_mixer_is_left_out_and_the_others_keep_their_numbers(name: str) -> None:
    model = attnlab.install(build(name), "mixer(average) @ 0; dot | softmax @ 1")
    weights, source, layers = record_weights(model, {"input_ids": IDS})
    assert (weights.shape, layers) == ((1, HEADS, 5, 5), (1,))
    assert source.endswith("not shown: layer 0")
    with pytest.raises(InstallError, match="without output_attentions"):
        model(IDS, output_attentions=True)
    with pytest.raises(RequestError, match="has no attention weights"):
        record_weights(attnlab.install(build(name), "mixer(average)"), {"input_ids": IDS})


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(RequestError, match="get_encoder"):
        find_model(build("bart"))
    with pytest.raises(RequestError, match="Hugging Face model"):
        find_model(torch.nn.Linear(2, 2))
    with pytest.raises(RequestError, match="token 64, and BertModel knows 64"):
        record_weights(build("bert"), {"input_ids": torch.tensor([[64]])})
    with pytest.raises(RequestError, match="has 70 tokens, and BertModel reads 66"):
        record_weights(build("bert"), {"input_ids": torch.ones(1, 70, dtype=torch.long)})
    with pytest.raises(RequestError, match="cannot read these 66 tokens"):
        # RoBERTa counts positions from the padding token on.
        record_weights(build("roberta"), {"input_ids": torch.full((1, 66), 5)})
