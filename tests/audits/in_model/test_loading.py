"""Models to audit are loaded with their heads and mechanisms; what cannot be loaded is one error."""

from pathlib import Path
from typing import Any

import pytest

import attnlab
from attnlab.audits.in_model.loading import load
from attnlab.errors import RequestError

from .models import gpt2


def test_a_model_is_loaded_with_its_head_and_its_mechanism(tmp_path: Path) -> None:
    model: Any = gpt2()
    model.save_pretrained(tmp_path / "plain")
    attnlab.save(attnlab.install(model, "cosine | softmax"), tmp_path / "installed")
    assert type(load(str(tmp_path / "plain"))) is type(model)
    assert str(attnlab.mechanism_of(load(str(tmp_path / "installed")))) == "cosine | softmax"


def test_what_is_no_model_is_one_error(tmp_path: Path, unreachable_hub: list[bytes]) -> None:
    with pytest.raises(RequestError, match=f"cannot load a model from '{tmp_path}': .*Give a folder"):
        load(str(tmp_path))
    with pytest.raises(RequestError, match="there is no folder 'no/such/folder/here'"):
        load("no/such/folder/here")
    assert not unreachable_hub


def test_adapters_and_folders_of_a_trainer_say_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    model: Any = gpt2()
    for step in (9, 10):
        model.save_pretrained(tmp_path / "trainer" / f"checkpoint-{step}")
    with pytest.raises(RequestError, match=r"is an adapter of peft.*merge_and_unload"):
        load(str(tmp_path / "adapter"))
    with pytest.raises(RequestError, match=r"give the newest: '.*checkpoint-10'"):
        load(str(tmp_path / "trainer"))
