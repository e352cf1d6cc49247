"""A saved model is loaded as it was, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel, GPT2Model, PreTrainedModel

import attnlab
from attnlab.checksums import SUMS
from attnlab.errors import InstallError, MechanismError, RequestError
from attnlab.install import set_progress
from tests.install.models import build, tokens, with_loss

LINE = "cosine | relu(divide=n)"


@pytest.fixture
def saved(tmp_path: Path) -> tuple[PreTrainedModel, Path]:
    model = with_loss("bert")
    attnlab.install(model, LINE)
    attnlab.save(model, tmp_path / "model")
    return model, tmp_path / "model"


def edit(folder: Path, **changes: Any) -> None:
    """Change config.json on purpose, and delete its hash; None takes an entry out."""
    (folder / SUMS).unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    config |= changes
    (folder / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))


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
    for load in (attnlab.load, BertModel.from_pretrained):
        with pytest.raises(MechanismError, match=r"first \(.*--plugin FILE\): unknown stage 'relu_cubed'") as caught:
            load(folder)
        assert "did you mean" not in str(caught.value)  # the line was right when it was saved
    (folder / "own.py").touch()
    with pytest.raises(MechanismError, match=r"runpy\.run_path\('.*own\.py'\)"):
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
    (folder / SUMS).unlink()
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


def test_a_file_that_fits_but_was_changed_is_refused(tmp_path: Path) -> None:
    attnlab.save(attnlab.install(build("gpt2"), "cosine | softmax"), tmp_path)
    for file in [file for file in tmp_path.iterdir() if file.name != SUMS]:
        whole = file.read_bytes()
        file.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        loaders = (attnlab.load, GPT2Model.from_pretrained)
        for load in loaders if file.suffix == ".safetensors" else loaders[:1]:
            with pytest.raises(InstallError, match=f"{file.name} is not what was written.*on purpose, delete .*{SUMS}"):
                load(tmp_path)
        file.write_bytes(whole)
    file = tmp_path / "config.json"
    file.write_text(file.read_text().replace('"gelu_new"', '"relu"'))
    (tmp_path / SUMS).unlink()
    assert attnlab.load(tmp_path).config.activation_function == "relu"


@pytest.mark.parametrize("path", [None, 5, ""])
def test_what_is_no_path_is_refused(path: Any) -> None:
    model = attnlab.install(build("bert"), "cosine | softmax")
    with pytest.raises(RequestError, match="the path of a directory is needed"):
        attnlab.save(model, path)
    with pytest.raises(RequestError, match="the path of a directory is needed"):
        attnlab.load(path)


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path) -> None:
    (tmp_path / "baseline").mkdir()
    with pytest.raises(InstallError, match=r"there is no folder '.*nowhere'; .* holds baseline$"):
        attnlab.load(tmp_path / "nowhere")


def test_the_newest_checkpoint_of_trainer_is_named(tmp_path: Path) -> None:
    for name in ("checkpoint-9", "checkpoint-20", "checkpoint-100-old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "checkpoint-30").mkdir()  # of a Trainer that was killed
    with pytest.raises(InstallError, match=r"checkpoints of Trainer; load the newest: '.*checkpoint-20'$"):
        attnlab.load(tmp_path)
