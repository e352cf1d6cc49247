"""Models that compute attention by themselves take mechanisms by a bridge: BLOOM, MPT and Falcon."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, StaticCache

import attnlab
from attnlab.errors import AttnlabWarning, InstallError
from attnlab.install import compat
from attnlab.install.bridges import read_own_mask
from tests.install.families import BRIDGED, build_family, compute_logits, generate
from tests.install.models import SHARED, padding, tokens
from tests.kernels.published import fp32_as_fp64

CHOSEN = ("bloom", "mpt", "falcon", "falcon alibi")


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    with fp32_as_fp64():
        yield


def installed(name: str, line: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttnlabWarning)
        return attnlab.install(build_family(BRIDGED[name]), line)


def difference(one: Any, other: Any, side: str = "left") -> float:
    return float((compute_logits(one, side) - compute_logits(other, side)).abs().max())


@pytest.mark.parametrize("name", CHOSEN)
def test_plain_attention_leaves_the_model_what_it_has(name: str) -> None:
    # positions(model): ALiBi and the rotation stay.
    assert difference(installed(name, "dot | softmax"), build_family(BRIDGED[name])) <= 1e-9


def test_falcon_of_transformers_adds_its_alibi_twice_in_eager_attention() -> None:
    # If this fails, transformers has mended it: `build_family` and docs/install.md say otherwise.
    once = build_family(BRIDGED["falcon alibi"])
    twice = copy.deepcopy(once)
    for part in twice.modules():
        if hasattr(part, "config"):
            compat.set_attention_name(part.config, "eager")
    assert difference(once, twice) > 0.01


@pytest.mark.parametrize("line", ["dot | softmax | nope", "cosine | relu(divide=n) | rope", "dot | softmax | relative"])
@pytest.mark.parametrize("name", CHOSEN)
def test_another_scheme_replaces_the_positions_of_the_model(name: str, line: str) -> None:
    model = installed(name, line)
    assert difference(model, build_family(BRIDGED[name])) > 1e-3
    # Falcon's ALiBi fails with a static cache, without a mechanism too.
    checks = ["leak", "padding", "gradient", "positions"] if name == "falcon alibi" else None
    audit = attnlab.audit(model, checks=checks)
    assert audit.passed, str(audit)
    assert str(attnlab.describe(model)).startswith(line)


@pytest.mark.parametrize("line", ["dot | softmax | forget", "dot | softmax | gate | window(3)"])
@pytest.mark.parametrize("name", CHOSEN)
def test_stages_that_need_the_layers_input_decode_with_a_cache(name: str, line: str) -> None:
    model = installed(name, line)
    found, _ = generate(model)
    batch = {"input_ids": found, "attention_mask": torch.nn.functional.pad(padding("left"), (0, 12), value=1)}  # type: ignore[arg-type]
    with torch.no_grad():
        again = model(**batch, use_cache=False).logits[:, -13:-1].argmax(-1)
    assert torch.equal(again, found[:, -12:])


@pytest.mark.parametrize("name", CHOSEN)
def test_saved_models_are_loaded_and_uninstalled(name: str, tmp_path: Path) -> None:
    model = installed(name, "dot(scale=learned) | softmax")
    attnlab.save(model, tmp_path)
    loaded = [attnlab.load(tmp_path), AutoModelForCausalLM.from_pretrained(tmp_path)]
    for other in loaded:
        assert str(attnlab.mechanism_of(other)) == "dot(scale=learned) | softmax"
        assert difference(other.double(), model) <= 1e-9
    plain = build_family(BRIDGED[name])
    assert difference(attnlab.uninstall(model), plain) == 0
    assert not any("forward" in vars(module) for module in model.modules())


@pytest.mark.parametrize("name", CHOSEN)
def test_weights_are_returned_if_they_are_asked_for(name: str) -> None:
    model = installed(name, "dot | softmax")
    for options, expected in (({}, False), ({"output_attentions": True}, True), ({}, False)):
        with torch.no_grad():
            weights = model(tokens(), **options).attentions
        assert (weights is not None and weights[0] is not None) == expected
        if expected:
            torch.testing.assert_close(weights[1].sum(-1), torch.ones_like(weights[1].sum(-1)))


@pytest.mark.parametrize("name", CHOSEN)
def test_a_training_step_has_the_dropout_of_the_model(name: str) -> None:
    family = BRIDGED[name]
    changes = {} if family.kind == "mpt" else {"attention_dropout": 0.5}
    config = AutoConfig.for_model(family.kind, **{**SHARED, **family.changes, **changes})
    head: Any = AutoModelForCausalLM
    plain = head.from_config(config).double()
    for module in plain.modules():
        if hasattr(module, "attn_dropout_p"):
            module.attn_dropout_p = 0.5  # MPT's config takes whole numbers only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttnlabWarning)
        model = attnlab.install(copy.deepcopy(plain), "dot | softmax").train()
    with torch.no_grad():
        once, again = model(tokens()).logits, model(tokens()).logits
    assert torch.equal(once, again) == (name == "falcon")  # Falcon has none beside its rotation


def test_a_static_cache_is_used_by_bloom_and_positions_are_refused_elsewhere() -> None:
    def decode(name: str, line: str) -> tuple[Tensor, Tensor]:
        model = installed(name, line)
        cache = StaticCache(config=model.config, max_cache_len=16)
        with torch.no_grad():
            first = model(tokens()[:, :5], past_key_values=cache, use_cache=True).logits
            rest = model(tokens()[:, 5:], past_key_values=cache, use_cache=True).logits
            return torch.cat([first, rest], 1), model(tokens()).logits

    for name, line in (
        ("bloom", "dot | softmax | alibi"),
        ("bloom", "cosine | relu(divide=n)"),  # keeps BLOOM's own ALiBi
        ("falcon", "dot | softmax"),
        ("mpt", "dot | softmax | nope"),
    ):
        torch.testing.assert_close(*decode(name, line))
    with pytest.raises(InstallError, match=r"asks for positions.*no static cache"):
        decode("mpt", "dot | softmax | alibi")


@pytest.mark.usefixtures("mixers")
def test_what_is_not_supported_is_refused_by_name() -> None:
    for name in CHOSEN:
        with pytest.raises(InstallError, match=r"computes attention by itself: attnlab replaces only that"):
            installed(name, "mixer(average)")
    for stage in ("bypass(alpha=0.5)", "norm(rms)"):
        message = (
            f"'{re.escape(stage)}.*' acts on a projection, and .*BloomAttention.* are interleaved in one projection"
        )
        with pytest.raises(InstallError, match=message):
            installed("bloom", f"dot | softmax | {stage}")


def test_mpt_has_value_stages_since_its_projection_is_known() -> None:
    assert difference(installed("mpt", "dot | softmax | bypass(alpha=0)"), build_family(BRIDGED["mpt"])) <= 1e-9
    assert attnlab.audit(installed("mpt", "dot | softmax | bypass(alpha=0.5) | shift(keys)")).passed
    assert installed("mpt", "dot | softmax | value_embedding")(tokens()).logits.isfinite().all()


def test_dropped_alibi_is_named_for_a_pretrained_model() -> None:
    for name, line in (("bloom", "dot | softmax | nope"), ("falcon alibi", "dot | softmax | alibi")):
        model = build_family(BRIDGED[name])
        model.name_or_path = "somewhere"
        with pytest.warns(AttnlabWarning, match="without what this .* was trained with: its ALiBi"):
            attnlab.install(model, line)


class Cache:
    """A cache that holds some tokens."""

    def __init__(self, num_tokens: int) -> None:
        self.num_tokens = num_tokens

    def get_seq_length(self, index: int) -> int:
        return self.num_tokens


def test_masks_of_the_model_are_read_as_padding_or_as_pairs() -> None:
    keys = torch.tensor([[False, True, True, True], [True, True, True, True]])[:, None, None]
    pairs = keys & torch.ones(4, 4).tril().bool()
    bias = torch.randn(2, 3, 1, 4, dtype=torch.float64)
    bias = torch.where(pairs, bias, torch.finfo(bias.dtype).min)
    for mask in (keys, pairs, bias):
        found = read_own_mask(mask, 4, 4, None, 0)
        assert found.dtype == torch.uint8
        assert torch.equal(found.bool(), keys)
    found = read_own_mask(pairs[:, :, -2:], 2, 4, Cache(4), 0)
    assert torch.equal(found.bool(), keys)
    # A static cache, and a mask of the user's own.
    assert torch.equal(read_own_mask(pairs[:, :, -2:], 2, 4, Cache(2), 0), pairs[:, :, -2:])
    own = pairs.clone()
    own[1, 0, 3, 0] = own[1, 0, 2, 1] = False
    assert torch.equal(read_own_mask(own, 4, 4, None, 0), own)
