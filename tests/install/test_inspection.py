"""What is installed in a model, what weight decay leaves alone, and the progress of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import transformers

import attnlab
from attnlab.errors import AttnlabError, InstallError, RequestError
from attnlab.install import attention_layers, penalty, set_progress, undecayed
from attnlab.mechanisms import Mechanism
from tests.install.models import SMALL, build, tokens


def test_installing_is_in_place_and_known_afterwards() -> None:
    model = build("bert")
    assert attnlab.mechanism_of(model) is None
    assert attnlab.install(model, "cosine | relu(divide=n)") is model
    assert attnlab.mechanism_of(model) == Mechanism.parse("cosine | relu(divide=n)")
    names = [name for name, _, _ in attention_layers(model)]
    assert names == [f"encoder.layer.{i}.attention.self" for i in range(2)]
    assert attnlab.mechanism_of(model.encoder.layer[0]) == attnlab.mechanism_of(model)


@pytest.mark.parametrize("call", [attnlab.mechanism_of, attnlab.uninstall, penalty, undecayed])
def test_what_is_no_model_with_a_mechanism_is_refused(call: Any) -> None:
    with pytest.raises(AttnlabError, match="needed"):
        call("bert-base-uncased")
    if call is not attnlab.mechanism_of:
        with pytest.raises(InstallError, match="no mechanism"):
            call(build("bert"))


def test_a_mechanism_cannot_be_switched_off_without_a_word() -> None:
    model: Any = attnlab.install(build("gpt2"), "cosine | softmax")
    with pytest.raises(InstallError, match=r"would switch off the mechanism.*uninstall"):
        model.set_attn_implementation("sdpa")
    model.config._attn_implementation = "eager"
    with pytest.raises(InstallError, match="was switched to 'eager' attention since"):
        attnlab.mechanism_of(model)
    with pytest.raises(InstallError, match=r"config was switched to 'eager' attention since, which would not compute"):
        model(tokens())
    attnlab.install(model, "cosine | softmax")
    model(tokens())
    assert str(attnlab.mechanism_of(model)) == "cosine | softmax"
    attnlab.uninstall(model)
    model.set_attn_implementation("sdpa")


def test_a_mechanism_in_a_part_is_not_saved_as_if_it_were_in_the_whole(tmp_path: Path) -> None:
    outer: Any = transformers.BartForConditionalGeneration(transformers.BartConfig(**SMALL, forced_eos_token_id=None))
    attnlab.install(outer.model.decoder, "cosine | softmax")
    for save in (outer.save_pretrained, lambda folder: attnlab.save(outer, folder)):
        with pytest.raises(InstallError, match="installed in a part of this BartForConditionalGeneration"):
            save(tmp_path / "whole")
    with pytest.raises(InstallError, match=r"its part 'model\.decoder'"):
        attnlab.install(outer, "dot | softmax")
    attnlab.install(outer.model.encoder, "dot | sparsemax")
    with pytest.raises(InstallError, match="hold different mechanisms"):
        attnlab.mechanism_of(outer)


def test_training_without_telling_the_progress_is_refused() -> None:
    model = attnlab.install(build("bert"), "dot | softmax | bypass(schedule=warmup)")
    model(tokens())
    with pytest.raises(InstallError, match="set_progress"):
        model.train()(tokens())
    wrongs: list[Any] = [2, -0.1, True, "half"]
    for wrong in wrongs:
        with pytest.raises(RequestError, match="from 0 to 1"):
            set_progress(model, wrong)
