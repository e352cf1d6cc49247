"""A saved model is loaded as what it was, or not at all: not by plain transformers, not with another mechanism."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, BertForMaskedLM, PreTrainedModel

import attnlab
from attnlab.errors import InstallError, RequestError
from tests.install.models import build, padding, pair, tokens, with_loss

LINE = "cosine | relu(divide=n)"


@pytest.fixture
def saved(tmp_path: Path) -> tuple[PreTrainedModel, Path]:
    model = with_loss("bert")
    attnlab.install(model, LINE)
    attnlab.save(model, tmp_path / "model")
    return model, tmp_path / "model"


def test_a_directory_holds_config_and_safetensors_alone(saved: tuple[PreTrainedModel, Path]) -> None:
    _, folder = saved
    assert sorted(file.name for file in folder.iterdir()) == ["attnlab.safetensors", "config.json"]
    config = json.loads((folder / "config.json").read_text())
    assert config["attnlab"]["mechanism"] == LINE
    assert config["architectures"] == ["BertForMaskedLM"]


PLAIN = """
import sys
import transformers
for folder in sys.argv[1:]:
    for loader in (transformers.AutoModel, transformers.BertModel, transformers.BertForMaskedLM):
        try:
            loader.from_pretrained(folder)
        except (OSError, ValueError) as error:
            assert "attnlab" in str(error) or "no file named model.safetensors" in str(error), error
        else:
            raise SystemExit(f"{loader.__name__} read {folder}")
assert "attnlab" not in sys.modules
"""


def test_plain_transformers_fails_loudly_on_it_however_it_was_saved(tmp_path: Path) -> None:
    model = with_loss("bert")
    attnlab.install(model, LINE)
    folders = [tmp_path / name for name in ("save", "save_pretrained")]
    attnlab.save(model, folders[0])
    model.save_pretrained(folders[1])
    with pytest.raises(InstallError, match="was installed in another model"):
        model.bert.save_pretrained(tmp_path / "inner")
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, *map(str, folders)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for folder in folders:
        assert str(attnlab.mechanism_of(attnlab.load(folder))) == LINE


def test_the_silent_revert_is_there_without_our_handling(tmp_path: Path) -> None:
    model = with_loss("bert")
    attnlab.install(model, LINE)
    type(model).save_pretrained(model, tmp_path)  # what transformers would do
    reverted = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    assert not torch.allclose(reverted(tokens()).logits, model(tokens()).logits, atol=1e-3)
    with pytest.raises(InstallError, match="names no mechanism"):
        attnlab.load(tmp_path)


def test_after_uninstall_plain_transformers_reads_it_again(tmp_path: Path) -> None:
    model = with_loss("bert")
    attnlab.uninstall(attnlab.install(model, LINE))
    model.save_pretrained(tmp_path)
    read: Any = BertForMaskedLM.from_pretrained(tmp_path, attn_implementation="eager")
    read.eval()
    assert torch.equal(read(tokens()).logits, model(tokens()).logits)


def test_saving_needs_a_mechanism_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="no mechanism is installed"):
        attnlab.save(build("bert"), tmp_path)
    model = attnlab.install(build("bert"), LINE)
    (tmp_path / "file").touch()
    with pytest.raises(RequestError, match="is a file"):
        attnlab.save(model, tmp_path / "file")
    with pytest.raises(InstallError, match="without push_to_hub"):
        model.save_pretrained(tmp_path, push_to_hub=True)


@pytest.mark.parametrize("line", ["dot | softmax | share(qk)", "dot | softmax | share(qkv)"])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_tied_weights_are_saved_once_and_tied_again(name: str, line: str, tmp_path: Path) -> None:
    model = with_loss(name)
    attnlab.install(model, line)
    attnlab.save(model, tmp_path)
    stored = load_file(tmp_path / "attnlab.safetensors")
    assert sum(tensor.numel() for tensor in stored.values()) == model.num_parameters()
    loaded: Any = attnlab.load(tmp_path)
    assert loaded.num_parameters() == model.num_parameters()
    if name == "bert":
        attention = loaded.bert.encoder.layer[0].attention.self
        assert attention.key.weight is attention.query.weight


def test_weights_gathered_by_someone_else_must_be_all_of_them(tmp_path: Path) -> None:
    model = attnlab.install(build("bert"), LINE)
    state = model.state_dict()
    model.save_pretrained(tmp_path, state_dict=state, is_main_process=False)
    assert not list(tmp_path.iterdir())
    model.save_pretrained(tmp_path, state_dict=state)
    assert torch.equal(attnlab.load(tmp_path)(tokens()).last_hidden_state, model(tokens()).last_hidden_state)
    state.pop("pooler.dense.bias")
    with pytest.raises(InstallError, match=r"lacks 1 of the model's weights: pooler\.dense\.bias"):
        model.save_pretrained(tmp_path, state_dict=state)


def test_a_model_of_two_models_survives(tmp_path: Path) -> None:
    model = pair()
    attnlab.install(model, "dot | softmax | share(qk) | bypass(alpha=0.5) | value_residual")
    given = {"input_ids": tokens(), "attention_mask": padding("right"), "decoder_input_ids": tokens(length=5)}
    attnlab.save(model, tmp_path)
    assert torch.equal(attnlab.load(tmp_path)(**given).logits, model(**given).logits)


def test_plain_weights_beside_it_would_be_loaded_without_it(tmp_path: Path) -> None:
    model: Any = build("bert")
    model.save_pretrained(tmp_path)
    attnlab.install(model, "cosine | softmax")
    with pytest.raises(RequestError, match=r"holds model\.safetensors, which from_pretrained would load"):
        attnlab.save(model, tmp_path)
