"""Every mechanism of the catalog in BERT, RoBERTa, GPT-2 and Llama: it trains, and survives saving and loading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import InstallError
from attnlab.mechanisms import CATALOG, UNIFORM
from tests.install.models import STARTED, build, deep_enough, learned, padding, tokens
from tests.sampling import is_sampled

WITHOUT_QUERY_GRADIENT = {"hard"}
"""Specimens whose queries and keys get no gradient by definition."""

CASES = [
    (model, name)
    for first, model in enumerate(STARTED)
    for second, name in enumerate(CATALOG)
    if is_sampled(first, second)
]


def started(model: str, name: str) -> Any:
    built = deep_enough(model, name)
    attnlab.install(built, name)
    return built


def step(model: Any) -> float:
    """Train one step on one batch; return the loss."""
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    torch.manual_seed(0)
    loss = model(tokens(), attention_mask=padding("right"), labels=tokens()).loss
    loss.backward()
    optimizer.step()
    model.eval()
    return float(loss.detach())


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_it_trains_a_step_with_gradient_to_every_parameter(kind: str, name: str) -> None:
    model = started(kind, name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    assert step(model) > 0
    for key, parameter in model.named_parameters():
        if not parameter.requires_grad:  # position embeddings that another scheme replaces
            assert not any(one.positions.is_of_model for one in CATALOG[name].mechanism.distinct)
            continue
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        if ".attnlab." in key:
            assert parameter.grad.any(), key
            assert not torch.equal(parameter, before[key]), key
    projections = [p for key, p in model.named_parameters() if any(part in key for part in ("query.w", "q_proj.w"))]
    assert all(bool(p.grad.any()) == (name not in WITHOUT_QUERY_GRADIENT) for p in projections if p.grad is not None)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_it_survives_saving_and_loading(kind: str, name: str, tmp_path: Path) -> None:
    model = started(kind, name)
    step(model)
    attnlab.save(model, tmp_path)
    loaded = attnlab.load(tmp_path, name)
    assert type(loaded) is type(model)
    assert loaded.num_parameters() == model.num_parameters()
    assert learned(loaded).keys() == learned(model).keys()
    for side in ("none", "right"):
        mask = padding(side)
        with torch.no_grad():
            found, expected = (m(tokens(), attention_mask=mask).logits for m in (loaded, model))
        assert torch.equal(found, expected)


@pytest.mark.parametrize("name", UNIFORM)
def test_grouped_key_heads_take_it_or_say_why_not(name: str) -> None:
    mechanism = UNIFORM[name]
    model = build("llama grouped", AutoModelForCausalLM)
    if "bypass" in str(mechanism) or "q" in mechanism.share.what.removeprefix("separate"):
        with pytest.raises(InstallError, match="grouped"):
            attnlab.install(model, name)
        return
    attnlab.install(model, name)
    step(model)
    assert all(p.grad is not None and p.grad.any() for p in learned(model).values())


GENERATING = [name for name, entry in CATALOG.items() if "mask(" not in entry.line]


GENERATING_CASES = [
    (kind, name)
    for first, kind in enumerate(("gpt2", "llama"))
    for second, name in enumerate(GENERATING)
    if is_sampled(first, second)
]


@pytest.mark.parametrize(("kind", "name"), GENERATING_CASES)
def test_generation_with_a_cache_gives_the_same_tokens_as_without(kind: str, name: str) -> None:
    model = started(kind, name)
    mask = padding("left")
    both = [
        model.generate(tokens(), attention_mask=mask, max_new_tokens=5, do_sample=False, use_cache=use_cache)
        for use_cache in (True, False)
    ]
    assert torch.equal(*both)
    assert both[0].shape[1] > 9
