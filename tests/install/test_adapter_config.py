"""A peft adapter carries the mechanism of its base, and is refused by any other base."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from transformers import AutoModelForCausalLM

import attnlab
from attnlab.errors import AttnlabWarning, InstallError
from tests.install.models import tokens, with_loss

LINE = "cosine | softmax | bypass(alpha=0.5, learn=true)"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a plain model."""
    folder = tmp_path_factory.mktemp("base")
    with_loss("llama").save_pretrained(folder)
    return folder


def load_base(folder: Path, line: str | None = LINE) -> Any:
    """Load the plain model, and install a mechanism."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    return model if line is None else attnlab.install(model, line)


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Save an adapter, whose mechanism was installed after it and has trained parameters; return its logits too."""
    folder = tmp_path_factory.mktemp("adapter")
    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    model: Any = peft.get_peft_model(load_base(base, None), config)
    attnlab.install(model, LINE)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "alpha" in name:
                parameter.fill_(0.1)
    model.save_pretrained(folder)
    return folder, model.eval()(input_ids=tokens()).logits


def test_an_adapter_is_loaded_with_the_trained_parameters_of_its_mechanism(
    base: Path, adapter: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, expected = adapter
    model: Any = peft.PeftModel.from_pretrained(load_base(base), folder)
    assert torch.equal(model(input_ids=tokens()).logits, expected)
    model.save_pretrained(str(tmp_path))
    saved_again: Any = peft.PeftModel.from_pretrained(load_base(base), tmp_path)
    assert torch.equal(saved_again(input_ids=tokens()).logits, expected)
    again: Any = load_base(base)
    again.load_adapter(str(folder))  # transformers' own way
    assert torch.equal(again.eval()(tokens()).logits, expected)


@pytest.mark.parametrize("line", [None, "dot | softmax"])
def test_another_base_is_refused_and_not_changed(base: Path, adapter: tuple[Path, Any], line: str | None) -> None:
    model = load_base(base, line)
    has = "has none" if line is None else f"has '{line}'"
    said = f"was trained on a model with '{LINE}', and the base model {has}; call attnlab.install(base, '{LINE}')"
    names = list(model.state_dict())
    for load in (peft.PeftModel.from_pretrained, type(model).load_adapter):
        with pytest.raises(InstallError) as raised:
            load(model, str(adapter[0]))
        assert said in str(raised.value)
        assert list(model.state_dict()) == names
    other: Any = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"]))
    with pytest.raises(InstallError) as raised:
        other.load_adapter(adapter[0], "default")  # as Trainer does when it resumes
    assert said in str(raised.value)


def test_auto_classes_find_the_base_and_check_it(base: Path, adapter: tuple[Path, Any], tmp_path: Path) -> None:
    folder, expected = adapter
    with pytest.raises(InstallError, match="and the base model has none"):
        peft.AutoPeftModelForCausalLM.from_pretrained(folder)
    attnlab.save(load_base(base), tmp_path / "base")
    moved = tmp_path / "adapter"
    moved.mkdir()
    for file in folder.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = str(tmp_path / "base")
    (moved / "adapter_config.json").write_text(json.dumps(config))
    model: Any = peft.AutoPeftModelForCausalLM.from_pretrained(moved)
    torch.testing.assert_close(model.eval()(input_ids=tokens()).logits, expected)


def test_without_attnlab_peft_names_it_in_its_error(adapter: tuple[Path, Any]) -> None:
    kind = json.loads((adapter[0] / "adapter_config.json").read_text())["peft_type"]
    with pytest.raises(KeyError, match="install attnlab, `import attnlab`, and install that mechanism"):
        peft.PEFT_TYPE_TO_CONFIG_MAPPING[kind]  # as peft looks it up


def test_an_adapter_of_a_plain_model_is_as_before(base: Path, tmp_path: Path) -> None:
    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    peft.get_peft_model(load_base(base, None), config).save_pretrained(str(tmp_path))
    assert "attnlab" not in (tmp_path / "adapter_config.json").read_text()
    for line in (None, "dot | softmax"):  # which compute the same
        peft.PeftModel.from_pretrained(load_base(base, line), tmp_path)


def test_an_adapter_of_a_plain_model_warns_on_a_base_with_a_mechanism(base: Path, tmp_path: Path) -> None:
    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    peft.get_peft_model(load_base(base, None), config).save_pretrained(str(tmp_path))
    said = "probably trained on plain attention, and the base model has 'cosine | softmax"
    for load in (peft.PeftModel.from_pretrained, type(load_base(base, None)).load_adapter):
        with pytest.warns(AttnlabWarning, match=said) as warned:
            load(load_base(base), str(tmp_path))
        assert len(warned) == 1
    with pytest.warns(AttnlabWarning, match="peft freezes what"):  # and nothing else: it is for the base it is made on
        peft.get_peft_model(load_base(base), config)


def test_each_adapter_of_a_plain_model_warns_once(base: Path, tmp_path: Path) -> None:
    lora = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    prompt = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    for config, folder in ((lora, tmp_path / "lora"), (prompt, tmp_path / "prompt")):
        peft.get_peft_model(load_base(base, None), config).save_pretrained(str(folder))
        with pytest.warns(AttnlabWarning, match="names no mechanism") as warned:
            model = peft.PeftModel.from_pretrained(load_base(base), folder)
        assert len(warned) == 1
        with pytest.warns(AttnlabWarning, match="names no mechanism") as warned:
            model.load_adapter(str(folder), adapter_name="second")
        assert len(warned) == 1


def test_a_plain_adapter_warns_in_the_place_of_a_new_one(base: Path, tmp_path: Path) -> None:
    config = peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    peft.get_peft_model(load_base(base, None), config).save_pretrained(str(tmp_path))
    with pytest.warns(AttnlabWarning, match="peft freezes what"):
        model: Any = peft.get_peft_model(load_base(base), config)
    with pytest.warns(AttnlabWarning, match="names no mechanism") as warned:
        model.load_adapter(str(tmp_path), "default")
    assert len(warned) == 1


def test_prompt_tuning_is_checked_too(base: Path, tmp_path: Path) -> None:
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    peft.get_peft_model(load_base(base), config).save_pretrained(str(tmp_path))
    with pytest.raises(InstallError, match="and the base model has none"):
        peft.PeftModel.from_pretrained(load_base(base, None), tmp_path)
    assert peft.PeftModel.from_pretrained(load_base(base), tmp_path)
