"""Checkpoints of others: nothing in them is run, and what cannot be loaded is one sentence."""

from __future__ import annotations

import json
import os
import re
from logging import ERROR
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import attnlab
from attnlab.data import load_tokenizer
from attnlab.errors import AttnlabError, PretrainedError
from attnlab.pretrained import load_pretrained

SOURCE = Path(attnlab.__file__).parent
SIZES: dict[str, Any] = {"n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 8, "vocab_size": 16}
HOSTILE = "from pathlib import Path\nPath(__file__).with_name('was-run').touch()\n"


def make_model() -> Any:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**SIZES))  # type: ignore[no-untyped-call]


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder whose config asks for code of its own, and a user who would type y."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    folder = tmp_path / "hostile"
    folder.mkdir()
    own = {"AutoConfig": "own.Config", "AutoModel": "own.Model", "AutoTokenizer": ["own.Tokenizer", "own.Tokenizer"]}
    config = {"model_type": "own", "architectures": ["Model"], "auto_map": own}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"auto_map": own, "tokenizer_class": "Tokenizer"}))
    (folder / "own.py").write_text(HOSTILE)
    return folder


@pytest.mark.parametrize("kind", [transformers.AutoConfig, transformers.AutoTokenizer, transformers.AutoModel])
def test_code_of_a_checkpoint_is_never_run(hostile: Path, kind: type) -> None:
    with pytest.raises(PretrainedError):
        load_pretrained(kind, hostile)
    assert not (hostile / "was-run").exists()


def test_the_tokenizer_of_a_checkpoint_with_code_is_refused(hostile: Path) -> None:
    with pytest.raises(AttnlabError, match="cannot load a tokenizer"):
        load_tokenizer(str(hostile))
    assert not (hostile / "was-run").exists()


def test_a_missing_folder_is_not_asked_for_at_the_hub(unreachable_hub: list[bytes]) -> None:
    for name in ("./nowhere", "/nowhere/model", "a/b/c", "~/nowhere"):
        with pytest.raises(PretrainedError, match=f"there is no folder '{name}'; .*a name on the hub would be"):
            load_pretrained(transformers.AutoConfig, name)
    assert not unreachable_hub


@pytest.mark.parametrize("kind", [transformers.AutoConfig, transformers.AutoTokenizer, transformers.AutoModel])
def test_a_hub_that_cannot_be_reached_is_asked_once(unreachable_hub: list[bytes], kind: type) -> None:
    with pytest.raises(
        PretrainedError, match=r"'nowhere/x'; it was taken for a name on the hub\. The hub cannot be reached \(127"
    ):
        load_pretrained(kind, "nowhere/x")
    assert len(unreachable_hub) == 1


def test_a_name_in_the_cache_of_the_hub_needs_no_connection(
    unreachable_hub: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    stored = tmp_path / "models--owner--name"
    make_model().config.save_pretrained(stored / "snapshots" / "1")
    (stored / "refs").mkdir()
    (stored / "refs" / "main").write_text("1")
    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", lambda *_, **__: "asked")
    assert load_pretrained(transformers.AutoConfig, "owner/name") == "asked"
    assert not unreachable_hub


def test_the_client_of_the_hub_is_silent_while_it_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.utils import logging

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    levels = []

    def ask(*_: Any, **__: Any) -> None:
        levels.append(logging.get_verbosity())
        raise OSError("no connection")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", ask)
    before = logging.get_verbosity()
    with pytest.raises(PretrainedError, match="OSError: no connection"):
        load_pretrained(transformers.AutoConfig, "owner/name")
    assert (levels, logging.get_verbosity()) == ([ERROR], before)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    model = make_model()
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(PretrainedError, match="safetensors"):
        load_pretrained(transformers.GPT2LMHeadModel, tmp_path)


def test_a_whole_checkpoint_is_loaded(tmp_path: Path) -> None:
    model = make_model()
    model.save_pretrained(tmp_path)
    for kind in (transformers.GPT2LMHeadModel, transformers.AutoModelForCausalLM):
        loaded = load_pretrained(kind, tmp_path)
        assert torch.equal(loaded.transformer.wte.weight, model.transformer.wte.weight)


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"model_type": 3}', '{"model_type": "gpt2", "n_layer": "x"}', "\0"]
)
def test_a_damaged_folder_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(PretrainedError) as raised:
        load_pretrained(transformers.AutoModelForCausalLM, tmp_path)
    assert "\n" not in str(raised.value)


def test_nothing_else_calls_from_pretrained() -> None:
    calls = re.compile(r"\.from_pretrained\(")
    files = [file.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*.py") if calls.search(file.read_text())]
    # The config of an adapter is JSON without code, and the card prints a call.
    assert sorted(files) == ["install/adapter_config.py", "pretrained.py", "reports/card/model_card.py"]


@pytest.mark.parametrize("setting", ["n_layer", "n_embd", "n_positions"])
def test_a_config_of_endless_size_is_refused(tmp_path: Path, setting: str) -> None:
    make_model().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, setting: 10**30}))
    with pytest.raises(PretrainedError, match=setting):
        load_pretrained(transformers.GPT2LMHeadModel, tmp_path)


def test_a_pipe_in_a_checkpoint_is_refused(tmp_path: Path) -> None:
    make_model().save_pretrained(tmp_path)
    os.mkfifo(tmp_path / "tokenizer.json")
    with pytest.raises(PretrainedError, match="is a pipe"):
        load_pretrained(transformers.AutoTokenizer, tmp_path)
