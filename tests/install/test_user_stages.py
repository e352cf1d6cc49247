"""The seven stages of a new user in models: the same answers whole, from caches of both kinds, and in padded batches.

What is right is said by the same model with an attention that computes the formula row by row, for one sequence alone.
"""

import copy
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForCausalLM, StaticCache
from transformers.masking_utils import sdpa_mask

import attnlab
from attnlab import Dims, Forget, Parameter, Params, stage
from attnlab.errors import InstallError
from attnlab.install import attention_layers, set_prefix
from tests.user_stages import LINES, attend_by_formula, register

from .models import VOCABULARY, build

pytestmark = pytest.mark.usefixtures("seven")

LENGTH, PADDED = 11, 4
MODELS = ("gpt2", "llama grouped", "mistral window")
TOLERANCE = 1e-6
"""Both models compute in fp64, but RMSNorm and rotary positions do so in fp32, whatever they are given."""


@pytest.fixture
def seven(own_stages: None) -> None:
    register()


def model_with(structure: str, name: str) -> Any:
    """Return a tiny model with one of the mechanisms, in fp64."""
    model = build(structure, AutoModelForCausalLM).double().eval()
    attnlab.install(model, LINES[name])
    return model


def formula_model(model: Any, name: str) -> Any:
    """Return the same model, plain, with an attention that computes the mechanism's formula for every row."""
    held = [{key: p.detach() for key, p in layer.named_parameters()} for _, _, layer in attention_layers(model)]
    plain = attnlab.uninstall(copy.deepcopy(model))

    def by_formula(module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, **rest: Any) -> tuple[Tensor, None]:
        places = torch.arange(q.shape[2])[None]
        out = attend_by_formula(
            name, q, k, v, lambda b, i, j: bool(mask[b, 0, i, j]), (places, places), held[module.layer_idx]
        )
        return out.transpose(1, 2).contiguous(), None

    def whole_mask(*given: Any, **rest: Any) -> Any:
        return sdpa_mask(*given, **{**rest, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})

    AttentionInterface.register("by_formula", by_formula)
    AttentionMaskInterface.register("by_formula", whole_mask)
    plain.set_attn_implementation("by_formula")
    return plain


def tokens(batch: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))


def by_pieces(model: Any, ids: Tensor, step: int, cache: Any = None, mask: Tensor | None = None) -> Tensor:
    """Return the logits of a sequence that is fed so many tokens at a time."""
    held, rows = cache, []
    for start in range(0, ids.shape[1], step):
        piece = ids[:, start : start + step]
        given: dict[str, Any] = {}
        if mask is not None:
            given["attention_mask"] = mask[:, : start + piece.shape[1]]
            given["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)[:, start : start + piece.shape[1]]
        out = model(piece, past_key_values=held, use_cache=True, **given)
        rows.append(out.logits)
        held = out.past_key_values
    return torch.cat(rows, 1)


def static(model: Any, length: int) -> StaticCache:
    return StaticCache(config=model.config, max_cache_len=length)


@pytest.mark.parametrize("structure", MODELS)
@pytest.mark.parametrize("name", LINES)
def test_every_way_to_compute_a_sequence_is_the_formula(name: str, structure: str) -> None:
    model = model_with(structure, name)
    ids = tokens(1, LENGTH)
    filler = tokens(1, PADDED, seed=5)
    real, none = torch.ones_like(ids), torch.zeros_like(filler)
    right, left = torch.cat([real, none], 1), torch.cat([none, real], 1)
    left_ids = torch.cat([filler, ids], 1)
    where = (left.cumsum(1) - 1).clamp(min=0)
    others = [tokens(1, LENGTH + PADDED, seed) for seed in (7, 8)]
    full = torch.ones_like(left)
    with torch.no_grad():
        exact = formula_model(model, name)(ids).logits
        ways = {
            "whole": model(ids).logits,
            "dynamic cache, a token at a time": by_pieces(model, ids, 1),
            "dynamic cache, by chunks": by_pieces(model, ids, 4),
            "static cache, a token at a time": by_pieces(model, ids, 1, static(model, LENGTH + 5)),
            "static cache, by chunks": by_pieces(model, ids, 4, static(model, LENGTH + 5)),
            "static cache, whole": by_pieces(model, ids, LENGTH, static(model, LENGTH + 5)),
            "right padding in a batch": model(
                torch.cat([others[0], torch.cat([ids, filler], 1), others[1]]),
                attention_mask=torch.cat([full, right, full]),
            ).logits[1:2, :LENGTH],
            "left padding in a batch": model(
                torch.cat([others[0], left_ids, others[1]]), attention_mask=torch.cat([full, left, full]),
                position_ids=torch.cat([full.cumsum(1) - 1, where, full.cumsum(1) - 1]),
            ).logits[1:2, PADDED:],
            "left padding, dynamic cache": by_pieces(model, left_ids, 3, mask=left)[:, PADDED:],
            "left padding, static cache": by_pieces(model, left_ids, 3, static(model, 21), left)[:, PADDED:],
            "left padding, static cache, a token at a time": by_pieces(model, left_ids, 1, static(model, 21), left)[
                :, PADDED:
            ],
        }  # fmt: skip
    scale = float(exact.abs().max())
    apart = {way: float((found - exact).abs().max()) / scale for way, found in ways.items()}
    assert max(apart.values()) < TOLERANCE, apart


@pytest.mark.parametrize("name", ["relative bias", "window", "key-gated forgetting"])
def test_generation_writes_the_same_from_both_kinds_of_cache(name: str) -> None:
    model: Any = model_with("gpt2", name)
    ids = torch.cat([tokens(1, 7), tokens(1, 7, seed=3)])
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    how = {"max_new_tokens": 12, "do_sample": False, "attention_mask": mask, "eos_token_id": None, "pad_token_id": 0}
    texts = [model.generate(ids, cache_implementation=kind, **how) for kind in (None, "static")]
    alone = model.generate(ids[1:, 3:], **{**how, "attention_mask": mask[1:, 3:]})
    assert torch.equal(texts[0], texts[1])
    assert torch.equal(texts[0][1, 7:], alone[0, 4:])


@pytest.mark.parametrize("structure", ["bert", "modernbert"])
def test_an_encoder_s_padding_and_neighbours_change_nothing(structure: str) -> None:
    for line in LINES.values():
        model: Any = build(structure).double().eval()
        attnlab.install(model, line)
        ids, filler = tokens(1, 9), tokens(1, 4, seed=2)
        mask = torch.cat([torch.ones_like(ids), torch.zeros_like(filler)], 1)
        with torch.no_grad():
            alone = model(ids).last_hidden_state
            both = torch.cat([torch.cat([ids, filler], 1), tokens(1, 13, seed=4)])
            padded = model(both, attention_mask=torch.cat([mask, torch.ones_like(mask)])).last_hidden_state[:1, :9]
        torch.testing.assert_close(padded, alone, rtol=1e-6, atol=1e-7)


def test_a_prefix_stands_before_the_first_token() -> None:
    model = model_with("gpt2", "relative bias")
    set_prefix(model, 3)
    ids, filler = tokens(1, LENGTH), tokens(1, PADDED, seed=5)
    left = torch.cat([torch.zeros_like(filler), torch.ones_like(ids)], 1)
    with torch.no_grad():
        whole = model(ids).logits
        ways = [
            by_pieces(model, ids, 1),
            by_pieces(model, ids, 4, static(model, LENGTH + 5)),
            by_pieces(model, torch.cat([filler, ids], 1), 3, static(model, 21), left)[:, PADDED:],
        ]
        layer: Any = next(layer for _, _, layer in attention_layers(model))
        layer.relative_bias_bias.data += torch.randn(13)  # the prefix is seen from different distances
        assert not torch.allclose(model(ids).logits, whole)
    for found in ways:
        torch.testing.assert_close(found, whole, rtol=1e-9, atol=1e-9)


def test_a_mask_of_the_user_s_own_that_hides_where_queries_stand_is_refused() -> None:
    model = model_with("gpt2", "relative bias")
    ids = tokens(1, 6)
    own = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril()
    refused = r"'relative_bias' asks for positions, and 'h\.0\.attn' was given a mask"
    with torch.no_grad():
        torch.testing.assert_close(model(ids, attention_mask=own).logits, model(ids).logits)
        with pytest.raises(InstallError, match=refused):
            model(ids, attention_mask=torch.ones(1, 1, 6, 9, dtype=torch.bool).tril(), past_key_values=static(model, 9))


def test_cross_attention_has_no_positions_to_tell() -> None:
    model = build("bart")
    with pytest.raises(InstallError, match="'relative_bias' needs positions, but in the cross-attention"):
        attnlab.install(model, LINES["relative bias"])
    attnlab.install(model, LINES["talking heads"])


def test_gradient_checkpointing_computes_the_same_gradients() -> None:
    grads = []
    for is_checkpointed in (False, True):
        model: Any = model_with("mistral window", "window").train()
        if is_checkpointed:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        ids = tokens(2, 9)
        mask = torch.ones_like(ids)
        mask[0, :2] = 0
        loss = model(ids, attention_mask=mask).logits.square().mean()
        grads.append(torch.autograd.grad(loss, list(model.parameters())))
    for plain, again in zip(*grads, strict=True):
        torch.testing.assert_close(again, plain)


def test_saved_and_loaded_it_is_told_positions_again(tmp_path: Any) -> None:
    model = model_with("gpt2", "window")
    attnlab.save(model, tmp_path / "saved")
    again: Any = attnlab.load(tmp_path / "saved")
    again.double().eval()
    ids = tokens(1, LENGTH)
    with torch.no_grad():
        torch.testing.assert_close(by_pieces(again, ids, 4, static(again, 20)), model(ids).logits)


def test_a_forget_stage_with_a_parameter_per_key_head_gets_one_per_query_head() -> None:
    """It gets keys that are repeated for the heads of the queries."""

    @stage("key_norm")
    @dataclass(frozen=True)
    class KeyNorm(Forget):
        uses_x = False

        def parameters(self, dims: Dims) -> dict[str, Parameter]:
            return {"b": Parameter((dims.num_key_heads,), 0.0, 1.0)}

        def log_kept(self, x: Tensor | None, p: Params, k: Tensor) -> Tensor:
            return -torch.nn.functional.softplus(p["b"][:, None, None] - k.norm(dim=-1, keepdim=True))

    model = attnlab.install(build("llama grouped", AutoModelForCausalLM), "dot | softmax | key_norm")
    assert attnlab.audit(model, checks=["gradient"]).passed
