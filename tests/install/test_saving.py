"""A saved model is loaded as what it was, or not at all: not by plain transformers, not with another mechanism."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, BertForMaskedLM, BertModel, GPT2Model, PreTrainedModel

import attnlab
from attnlab.errors import InstallError, MechanismError, RequestError
from attnlab.install import set_progress
from tests.install.models import build, padding, pair, tokens, with_loss

LINE = "cosine | relu(divide=n)"


@pytest.fixture
def saved(tmp_path: Path) -> tuple[PreTrainedModel, Path]:
    model = with_loss("bert")
    attnlab.install(model, LINE)
    attnlab.save(model, tmp_path / "model")
    return model, tmp_path / "model"


def edit(folder: Path, **changes: Any) -> None:
    """Change config.json; None takes an entry out."""
    config = json.loads((folder / "config.json").read_text())
    config |= changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


def test_a_directory_holds_config_and_safetensors_alone(saved: tuple[PreTrainedModel, Path]) -> None:
    _, folder = saved
    assert sorted(file.name for file in folder.iterdir()) == ["attnlab.safetensors", "config.json"]
    config = json.loads((folder / "config.json").read_text())
    assert config["attnlab"]["mechanism"] == LINE
    assert config["architectures"] == ["BertForMaskedLM"]


def test_loading_gives_the_same_model_in_eval_mode(saved: tuple[PreTrainedModel, Path]) -> None:
    model, folder = saved
    before = torch.get_rng_state()
    loaded: Any = attnlab.load(folder)
    assert torch.equal(before, torch.get_rng_state())
    assert not loaded.training
    assert str(attnlab.mechanism_of(loaded)) == LINE
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)
    assert loaded.config.model_type == "bert"
    assert loaded.get_input_embeddings().weight is loaded.get_output_embeddings().weight
    attnlab.uninstall(loaded)


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


def test_another_mechanism_than_asked_for_is_refused(saved: tuple[PreTrainedModel, Path]) -> None:
    _, folder = saved
    attnlab.load(folder, "cosine|relu( divide = n )")
    with pytest.raises(InstallError, match=r"holds 'cosine \| relu\(divide=n\)', not 'dot \| softmax'"):
        attnlab.load(folder, "dot | softmax")
    with pytest.raises(MechanismError):
        attnlab.load(folder, "dott | softmax")
    config = json.loads((folder / "config.json").read_text())
    edit(folder, attnlab=config["attnlab"] | {"mechanism": "dot | softmax"})
    with pytest.raises(InstallError, match="was trained with 'cosine"):
        attnlab.load(folder)


def test_a_stage_nobody_registered_is_named(saved: tuple[PreTrainedModel, Path]) -> None:
    _, folder = saved
    edit(folder, attnlab={"mechanism": "dot | relu_cubed", "version": 1})
    with pytest.raises(MechanismError, match="unknown stage 'relu_cubed'"):
        attnlab.load(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attnlab": None}, "not a directory of attnlab.save"),
        ({"attnlab": {"mechanism": LINE, "version": 99}}, "saved in format 99"),
        ({"auto_map": {"AutoModel": "evil.py"}}, "asks for code of its own"),
        ({"architectures": ["EvilModel"]}, "no model class 'EvilModel'"),
        ({"architectures": ["os"]}, "no model class 'os'"),
        ({"model_type": "attnlab-nonsense"}, "of model type 'nonsense'"),
        ({"num_hidden_layers": 3}, "lacks 16 weights"),
        ({"num_hidden_layers": 1}, "has no place for 16 weights"),
        ({"hidden_size": 16}, r"is \(64, 32\) in .* and \(64, 16\) in the model"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(saved: tuple[PreTrainedModel, Path], changes: Any, message: str) -> None:
    _, folder = saved
    edit(folder, **changes)
    with pytest.raises(InstallError, match=message):
        attnlab.load(folder)


def test_weights_that_do_not_fit_are_refused(saved: tuple[PreTrainedModel, Path]) -> None:
    _, folder = saved
    file = folder / "attnlab.safetensors"
    tensors = load_file(file)
    tensors["stray"] = torch.zeros(1)
    save_file(tensors, file, metadata={"attnlab": LINE})
    with pytest.raises(InstallError, match="has no place for 1 weights: stray"):
        attnlab.load(folder)
    file.write_bytes(b"not safetensors")
    with pytest.raises(InstallError, match="not readable"):
        attnlab.load(folder)
    file.unlink()
    with pytest.raises(InstallError, match=r"has no attnlab.safetensors"):
        attnlab.load(folder)


def test_what_is_no_directory_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match=r"has no config\.json"):
        attnlab.load(tmp_path)
    build("bert").save_pretrained(tmp_path)
    with pytest.raises(InstallError, match=r"Load it with from_pretrained, then attnlab\.install"):
        attnlab.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InstallError, match="not readable"):
        attnlab.load(tmp_path)


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


def test_dtype_progress_and_generation_settings_travel(tmp_path: Path) -> None:
    model = with_loss("gpt2").to(torch.bfloat16)
    model.generation_config.max_new_tokens = 7
    attnlab.install(model, "dot | softmax | bypass(schedule=decay)")
    set_progress(model, 0.5)
    attnlab.save(model, tmp_path)
    loaded: Any = attnlab.load(tmp_path)
    assert loaded.dtype == torch.bfloat16
    assert loaded.generation_config.max_new_tokens == 7
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)


def test_a_class_of_ones_own_is_given_not_fetched(tmp_path: Path) -> None:
    mine: Any = type("Mine", (BertModel,), {})
    attnlab.save(attnlab.install(mine(build("bert").config), LINE), tmp_path)
    with pytest.raises(InstallError, match=r"no model class 'Mine'.*model_class="):
        attnlab.load(tmp_path)
    assert type(attnlab.load(tmp_path, model_class=mine)) is mine
    with pytest.raises(InstallError, match="which GPT2Model is not"):
        attnlab.load(tmp_path, model_class=GPT2Model)
