"""A model asked only where there is a label gives the loss, the gradients and the predictions of the plain way."""

import warnings
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from attnlab import install
from attnlab.errors import AttnlabWarning
from attnlab.tasks.labelled import PROVEN_WAYS, Way, choose_way, compute_label_losses, compute_mean_loss
from attnlab.tasks.objective import add_penalty, compute_logits

SIZES: dict[str, dict[str, Any]] = {
    "bert": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
    "roberta": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    "albert": {"hidden_size": 16, "embedding_size": 8, "num_attention_heads": 2, "intermediate_size": 32},
    "electra": {"hidden_size": 16, "embedding_size": 8, "num_attention_heads": 2, "intermediate_size": 32},
    "modernbert": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2},
    "llama": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32},
    "opt": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 32,
            "word_embed_proj_dim": 16},
    "gemma2": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8,
               "num_key_value_heads": 2, "intermediate_size": 32},
    "granite": {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
                "logits_scaling": 3.0},
}  # fmt: skip
CAUSAL = {"gpt2", "llama", "opt", "gemma2", "granite"}
SLOWER: dict[str, Way] = {"gemma2": "labelled", "granite": "labelled", "opt": "whole"}
"""The first two cap or scale their logits after the last linear layer; OPT's head reads a part of its body."""


def build(kind: str, **more: Any) -> Any:
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=50, pad_token_id=1, bos_token_id=0, eos_token_id=0, **SIZES[kind], **more
    )
    torch.manual_seed(3)
    head: Any = transformers.AutoModelForCausalLM if kind in CAUSAL else transformers.AutoModelForMaskedLM
    return head.from_config(config)


def some_batch(rows: int = 3, length: int = 11) -> tuple[dict[str, Tensor], Tensor]:
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(4, 50, (rows, length), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    labels = torch.where(torch.rand(rows, length, generator=generator) < 0.4, ids, -100)
    labels[mask == 0] = -100
    labels[2] = -100
    return {"input_ids": ids, "attention_mask": mask}, labels


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks even for a tiny batch, the last of them shorter."""
    monkeypatch.setattr("attnlab.tasks.crossentropy.CHUNK", 150)


@pytest.mark.parametrize("kind", SIZES)
def test_every_way_a_model_takes_gives_the_plain_loss_and_gradients(kind: str) -> None:
    model = build(kind).double().eval()
    batch, labels = some_batch()
    plain = torch.nn.functional.cross_entropy(
        compute_logits(model, batch).flatten(0, 1), labels.flatten(), ignore_index=-100
    )
    plain.backward()
    wanted = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    ways: list[Way] = ["chunked", "labelled", "whole"]
    for way in ways[ways.index(SLOWER.get(kind, "chunked")) :]:
        model.zero_grad()
        loss = compute_mean_loss(model, batch, labels, way)
        loss.backward()
        assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
        for name, parameter in model.named_parameters():
            if name in wanted:
                torch.testing.assert_close(parameter.grad, wanted[name], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", SIZES)
def test_the_least_costly_right_way_is_found_and_anything_else_is_said(kind: str) -> None:
    model = build(kind)
    batch, labels = some_batch()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", AttnlabWarning)
        way = choose_way(model, batch, labels)
        choose_way(model, batch, labels)
    assert way == SLOWER.get(kind, "chunked")
    assert len([one for one in said if one.category is AttnlabWarning]) == (kind in SLOWER)


def test_a_cap_that_changes_small_logits_by_less_than_rounding_is_still_seen() -> None:
    """A softcap is next to the identity near 0, where an untrained model's logits are."""
    model = build("gemma2", final_logit_softcapping=1000.0)
    batch, labels = some_batch()
    with pytest.warns(AttnlabWarning, match="through one linear layer and no more"):
        assert choose_way(model, batch, labels) == "labelled"


def test_a_hook_that_changes_logits_is_seen_and_one_that_changes_the_head_s_input_is_applied() -> None:
    batch, labels = some_batch()
    capped = build("gpt2", tie_word_embeddings=False).eval()
    capped.lm_head.register_forward_hook(lambda module, args, output: output.tanh())
    with pytest.warns(AttnlabWarning, match="through one linear layer and no more"):
        assert choose_way(capped, batch, labels) == "labelled"
    scaled = build("gpt2", tie_word_embeddings=False).eval()
    scaled.lm_head.register_forward_pre_hook(lambda module, args: (3.0 * args[0],))
    assert choose_way(scaled, batch, labels) == "chunked"
    whole = compute_mean_loss(scaled, batch, labels, "whole").item()
    assert compute_mean_loss(scaled, batch, labels).item() == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
@pytest.mark.parametrize("way", ["chunked", "labelled"])
def test_predictions_are_those_of_whole_logits(kind: str, way: Way) -> None:
    model = build(kind).double()
    batch, labels = some_batch()
    nats, is_right = compute_label_losses(model, batch, labels, way)
    plain, plain_right = compute_label_losses(model, batch, labels, "whole")
    torch.testing.assert_close(nats, plain)
    assert torch.equal(is_right, plain_right)
    assert torch.equal(nats != 0, labels != -100)


def test_a_head_that_does_not_train_gets_no_gradient_and_the_rest_does() -> None:
    model = build("gpt2", tie_word_embeddings=False)
    model.lm_head.weight.requires_grad_(False)
    batch, labels = some_batch()
    compute_mean_loss(model, batch, labels).backward()
    assert model.lm_head.weight.grad is None
    assert model.transformer.wte.weight.grad.abs().sum() > 0


def test_a_mechanism_s_penalty_and_its_gradients_are_those_of_the_plain_pass() -> None:
    model = install(build("gpt2"), "dot | softmax | penalize(output, 0.5)").train()
    for part in model.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    batch, labels = some_batch()
    ways: tuple[Way, ...] = ("chunked", "whole")
    losses = {way: add_penalty(model, compute_mean_loss(model, batch, labels, way)) for way in ways}
    assert losses["chunked"].item() == pytest.approx(losses["whole"].item(), rel=1e-6)
    assert losses["chunked"].item() > compute_mean_loss(model.eval(), batch, labels).item()


def test_asking_leaves_the_model_as_it_was() -> None:
    model = build("bert")
    batch, labels = some_batch()
    before = compute_logits(model.eval(), batch)
    compute_mean_loss(model, batch, labels)
    assert torch.equal(compute_logits(model, batch), before)
    assert "forward" not in vars(model.get_output_embeddings())
    assert not model.base_model._forward_hooks


def test_bf16_products_sum_in_fp32() -> None:
    model = build("gpt2").eval()
    batch, labels = some_batch()
    plain = compute_mean_loss(model, batch, labels, "whole")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = compute_mean_loss(model, batch, labels)
    loss.backward()
    assert PROVEN_WAYS[model] == "chunked"
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(plain.item(), rel=2e-2)
    assert all(p.grad.dtype == torch.float32 for p in model.parameters() if p.grad is not None)
