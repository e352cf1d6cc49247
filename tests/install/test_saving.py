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
from transformers import BertForMaskedLM, PreTrainedModel

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
    assert sorted(file.name for file in folder.iterdir()) == ["SHA256SUMS", "attnlab.safetensors", "config.json"]
    config = json.loads((folder / "config.json").read_text())
    assert config["attnlab"]["mechanism"] == LINE
    assert config["architectures"] == ["BertForMaskedLM"]
    assert config["model_type"] == "bert"


PLAIN = """
import sys
import transformers
for folder in sys.argv[1:]:
    for loader in (transformers.AutoModel, transformers.BertModel, transformers.BertForMaskedLM):
        for options in ({}, {"attn_implementation": "eager"}, {"dtype": "bfloat16", "device_map": "cpu"}):
            try:
                loader.from_pretrained(folder, **options)
            except ValueError as error:
                assert "install attnlab and run `import attnlab` before from_pretrained" in str(error), error
            else:
                raise SystemExit(f"{loader.__name__} read {folder}")
    try:
        transformers.pipeline("fill-mask", model=folder, tokenizer=transformers.BertTokenizer(vocab={"[MASK]": 0}))
    except ValueError as error:
        assert "run `import attnlab` before from_pretrained" in str(error), error
    else:
        raise SystemExit(f"pipeline read {folder}")
    config = transformers.AutoConfig.from_pretrained(folder)
    try:
        transformers.AutoModel.from_config(config)
    except ValueError as error:
        assert 'attn_implementation="attnlab"' in str(error), error
    else:
        raise SystemExit(f"from_config built a model without the mechanism of {folder}")
    try:
        transformers.BertModel.from_pretrained(folder, config=transformers.BertConfig())
    except OSError as error:
        assert "no file named model.safetensors" in str(error), error
assert "attnlab" not in sys.modules
"""


def test_plain_transformers_fails_loudly_on_it_however_it_was_saved(tmp_path: Path) -> None:
    model = with_loss("bert")
    attnlab.install(model, LINE)
    folders = [tmp_path / name for name in ("save", "save_pretrained", "shards", "inner")]
    attnlab.save(model, folders[0])
    model.save_pretrained(folders[1])
    model.save_pretrained(folders[2], max_shard_size="20KB")
    model.bert.save_pretrained(folders[3])
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, *map(str, folders)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for folder in folders[:3]:
        assert str(attnlab.mechanism_of(attnlab.load(folder))) == LINE


def test_the_weights_alone_do_not_say_which_mechanism_they_need(tmp_path: Path) -> None:
    model = with_loss("bert")
    attnlab.install(model, LINE)
    kind: Any = BertForMaskedLM
    plain = kind(type(model.config).from_dict(model.config.to_dict())).eval()
    assert not plain.load_state_dict(model.state_dict()).missing_keys
    assert not torch.allclose(plain(tokens()).logits, model(tokens()).logits, atol=1e-3)


def test_a_mechanism_installed_in_the_body_is_saved_with_the_head(tmp_path: Path) -> None:
    model: Any = with_loss("bert")
    attnlab.install(model.bert, LINE)
    model.save_pretrained(tmp_path)
    loaded: Any = BertForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)


def test_a_part_whose_parameter_belongs_to_another_part_is_not_saved(tmp_path: Path) -> None:
    model: Any = pair()
    attnlab.install(model, "dot | softmax | bypass(learn=true, per=model)")
    with pytest.raises(InstallError, match="is shared with a layer outside this"):
        model.decoder.save_pretrained(tmp_path)


def test_shards_of_an_earlier_save_are_removed(tmp_path: Path) -> None:
    model = attnlab.install(build("bert"), LINE)
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    assert (tmp_path / "attnlab.safetensors.index.json").exists()
    assert len(list(tmp_path.glob("attnlab-*-of-*.safetensors"))) > 1
    assert torch.equal(attnlab.load(tmp_path)(tokens()).last_hidden_state, model(tokens()).last_hidden_state)
    model.save_pretrained(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["SHA256SUMS", "attnlab.safetensors", "config.json"]


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
