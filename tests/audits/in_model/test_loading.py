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


def test_what_is_no_model_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(RequestError, match="the folder does not give one"):
        load(str(tmp_path))
    with pytest.raises(RequestError, match="is not a folder here, and the hub does not give one"):
        load("no/such/folder/here")
