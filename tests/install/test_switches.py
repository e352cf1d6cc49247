"""What would lose or change a mechanism quietly is refused, or does not happen."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

import attnlab
from attnlab.errors import InstallError, RequestError

from .models import build, tokens

SMALL: dict[str, Any] = {
    "vocab_size": 48, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
    "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 1,
}  # fmt: skip


def test_a_decoder_whose_attention_does_not_call_itself_causal_sees_no_future() -> None:
    torch.manual_seed(0)
    config = transformers.BigBirdPegasusConfig(**SMALL, attention_type="original_full")
    auto: Any = transformers.AutoModelForCausalLM
    model = auto.from_config(config).eval()
    assert not any(getattr(m, "is_causal", False) for n, m in model.named_modules() if n.endswith("self_attn"))
    ids = torch.randint(3, 48, (1, 9), generator=torch.Generator().manual_seed(0))
    changed = torch.cat([ids[:, :-1], (ids[:, -1:] + 1) % 45 + 3], 1)
    original = model(ids).logits
    attnlab.install(model, "dot | softmax")
    assert torch.allclose(model(ids).logits, original, atol=1e-5)
    assert torch.equal(model(ids).logits[:, :-1], model(changed).logits[:, :-1])


def test_a_mechanism_cannot_be_switched_off_without_a_word() -> None:
    model: Any = attnlab.install(build("gpt2"), "cosine | softmax")
    with pytest.raises(InstallError, match=r"would switch off the mechanism.*uninstall"):
        model.set_attn_implementation("sdpa")
    model.config._attn_implementation = "eager"
    with pytest.raises(InstallError, match="was switched to 'eager' attention since"):
        attnlab.mechanism_of(model)
    attnlab.install(model, "cosine | softmax")
    assert str(attnlab.mechanism_of(model)) == "cosine | softmax"
    attnlab.uninstall(model)
    model.set_attn_implementation("sdpa")


def test_a_mechanism_in_a_part_is_not_saved_as_if_it_were_in_the_whole(tmp_path: Path) -> None:
    outer: Any = transformers.BartForConditionalGeneration(transformers.BartConfig(**SMALL, forced_eos_token_id=None))
    attnlab.install(outer.model.decoder, "cosine | softmax")
    with pytest.raises(InstallError, match="was installed in another model"):
        attnlab.save(outer, tmp_path / "whole")
    with pytest.raises(InstallError, match=r"its part 'model\.decoder'"):
        attnlab.install(outer, "dot | softmax")
    attnlab.install(outer.model.encoder, "dot | sparsemax")
    with pytest.raises(InstallError, match="hold different mechanisms"):
        attnlab.mechanism_of(outer)


def test_an_interrupted_pass_leaves_nothing_for_the_next() -> None:
    model: Any = attnlab.install(build("gpt2"), "dot | softmax | value_residual").eval()
    ids = tokens()
    before = model(ids)[0]

    def interrupt(module: nn.Module, args: Any) -> None:
        raise KeyboardInterrupt

    handle = model.h[1].register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model(ids.flip(1))
    handle.remove()
    assert torch.equal(model(ids)[0], before)


def test_plain_weights_beside_it_would_be_loaded_without_it(tmp_path: Path) -> None:
    model: Any = build("bert")
    model.save_pretrained(tmp_path)
    attnlab.install(model, "cosine | softmax")
    with pytest.raises(RequestError, match=r"holds model\.safetensors, which from_pretrained would load"):
        attnlab.save(model, tmp_path)


@pytest.mark.parametrize("path", [None, 5, ""])
def test_what_is_no_path_is_refused(path: Any) -> None:
    model = attnlab.install(build("bert"), "cosine | softmax")
    with pytest.raises(RequestError, match="the path of a directory is needed"):
        attnlab.save(model, path)
    with pytest.raises(RequestError, match="the path of a directory is needed"):
        attnlab.load(path)


def test_a_config_that_fits_but_was_changed_is_refused(tmp_path: Path) -> None:
    attnlab.save(attnlab.install(build("bert"), "cosine | softmax"), tmp_path)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    with pytest.raises(InstallError, match="is not the one its weights were saved with"):
        attnlab.load(tmp_path)


def test_a_cache_of_fixed_size_is_no_other_layout() -> None:
    model: Any = build("gpt2", transformers.AutoModelForCausalLM).eval()
    attnlab.install(model, "dot | softmax | bypass(alpha=0.5)")
    ids = torch.tensor([[5, 6, 7]])
    more: dict[str, Any] = {"max_new_tokens": 4, "do_sample": False, "attention_mask": torch.ones_like(ids)}
    fixed = model.generate(ids, cache_implementation="static", **more)
    assert torch.equal(fixed, model.generate(ids, **more))
