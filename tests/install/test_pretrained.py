"""What save_pretrained writes of a model with a mechanism, from_pretrained reads, once attnlab is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    pipeline,
)

import attnlab
from attnlab.checksums import SUMS
from attnlab.errors import InstallError
from attnlab.install import prefix_of, set_prefix, set_progress
from attnlab.install.saving import list_weight_files
from tests.install.models import VOCABULARY, build, pair, tokens, with_loss

LINE = "cosine(scale=learned) | relu(divide=n) | bypass(alpha=0.5, learn=true)"


def train_a_little(model: PreTrainedModel) -> None:
    """Move the learned parameters away from their initial values."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".attnlab." in name:
                parameter.add_(0.25)


def save_with(line: str, name: str, folder: Path, **options: Any) -> Any:
    model = with_loss(name)
    attnlab.install(model, line)
    train_a_little(model)
    model.save_pretrained(folder, **options)
    return model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp("saved")
    return save_with(LINE, "bert", folder), folder


@pytest.mark.parametrize("loader", [BertForMaskedLM, AutoModelForMaskedLM])
@pytest.mark.parametrize("options", [{}, {"low_cpu_mem_usage": True}, {"device_map": {"": "cpu"}}])
def test_from_pretrained_restores_the_mechanism(saved: tuple[Any, Path], loader: Any, options: Any) -> None:
    model, folder = saved
    before = torch.get_rng_state()
    loaded, info = loader.from_pretrained(folder, output_loading_info=True, **options)
    assert torch.equal(before, torch.get_rng_state())
    assert not any(info.values())
    assert str(attnlab.mechanism_of(loaded)) == LINE
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)
    assert not loaded.training
    assert loaded.get_input_embeddings().weight is loaded.get_output_embeddings().weight
    attnlab.uninstall(loaded)
    known = {"_name_or_path": str(folder), "architectures": ["BertForMaskedLM"], "dtype": "float32"}
    assert loaded.config.to_dict() == model.config.to_dict() | known
    assert torch.isfinite(loaded(tokens()).logits).all()


def test_dtype_is_that_of_the_call_or_of_the_folder(saved: tuple[Any, Path], tmp_path: Path) -> None:
    model, folder = saved
    half: Any = BertForMaskedLM.from_pretrained(folder, dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    half.save_pretrained(tmp_path)
    assert BertForMaskedLM.from_pretrained(tmp_path).dtype == torch.bfloat16
    half.float()
    torch.testing.assert_close(half(tokens()).logits, model(tokens()).logits, atol=0.05, rtol=0.05)


def test_a_body_and_another_head_are_read_from_it(saved: tuple[Any, Path]) -> None:
    model, folder = saved
    body = AutoModel.from_pretrained(folder)
    assert torch.equal(body(tokens()).last_hidden_state, model.bert(tokens()).last_hidden_state)
    head, info = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3, output_loading_info=True)
    assert str(attnlab.mechanism_of(head)) == LINE
    assert not [name for name in info["missing_keys"] if "attnlab" in name or "encoder" in name]
    config = AutoConfig.from_pretrained(folder, num_labels=5)  # as scripts of transformers do
    assert AutoModelForSequenceClassification.from_pretrained(folder, config=config)(tokens()).logits.shape[-1] == 5


def test_a_config_from_elsewhere_does_not_lose_the_mechanism(saved: tuple[Any, Path]) -> None:
    model, folder = saved
    plain = BertConfig.from_dict(model.config.to_dict())
    loaded: Any = BertForMaskedLM.from_pretrained(folder, config=plain)
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)


@pytest.mark.parametrize("line", ["dot | softmax | share(qk)", "dot | softmax | share(qkv)"])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_shards_and_tied_projections(name: str, line: str, tmp_path: Path) -> None:
    model = save_with(line, name, tmp_path, max_shard_size="20KB")
    loaded: Any = type(model).from_pretrained(tmp_path)
    assert loaded.num_parameters() == model.num_parameters()
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)
    loaded.save_pretrained(tmp_path)
    again: Any = type(model).from_pretrained(tmp_path)
    assert torch.equal(again(tokens()).logits, model(tokens()).logits)


def test_prefix_progress_and_generation_settings_travel(tmp_path: Path) -> None:
    model = with_loss("gpt2")
    attnlab.install(model, "dot | softmax | bypass(schedule=decay)")
    set_prefix(model, 3)
    set_progress(model, 0.5)
    model.generation_config.max_new_tokens = 7
    model.save_pretrained(tmp_path)
    loaded: Any = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert prefix_of(loaded) == 3
    assert loaded.generation_config.max_new_tokens == 7
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)


def test_a_model_of_two_models_is_read(tmp_path: Path) -> None:
    model = pair()
    attnlab.install(model, "dot | softmax | share(qk) | value_residual")
    model.save_pretrained(tmp_path)
    given = {"input_ids": tokens(), "decoder_input_ids": tokens(length=5)}
    assert torch.equal(type(model).from_pretrained(tmp_path)(**given).logits, model(**given).logits)


def test_a_pipeline_and_a_tokenizer_are_read_from_the_folder(saved: tuple[Any, Path]) -> None:
    model, folder = saved
    words = Tokenizer(WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w0"))
    words.pre_tokenizer = Whitespace()
    kind: Any = PreTrainedTokenizerFast
    kind(tokenizer_object=words, unk_token="w0", mask_token="w5", pad_token="w0").save_pretrained(folder)
    assert AutoTokenizer.from_pretrained(folder).mask_token == "w5"
    fill: Any = pipeline("fill-mask", model=str(folder), device="cpu")
    assert str(attnlab.mechanism_of(fill.model)) == LINE
    expected = model(torch.tensor([[7, 5, 9]])).logits[0, 1].softmax(-1).max()
    assert fill("w7 w5 w9")[0]["score"] == pytest.approx(expected.item())


def test_weights_come_in_the_config_and_the_call(saved: tuple[Any, Path], tmp_path: Path) -> None:
    model, folder = saved
    expected = model(tokens(), output_attentions=True).attentions
    loaded: Any = BertForMaskedLM.from_pretrained(folder, output_attentions=True)
    for one in (loaded, save_and_read(loaded, tmp_path)):
        assert one.config.output_attentions
        torch.testing.assert_close(one(tokens()).attentions, expected)
        one.config.output_attentions = False
        assert one(tokens()).attentions is None
    model.config.output_attentions = True
    torch.testing.assert_close(model(tokens()).attentions, expected)
    model.config.output_attentions = False
    plain: Any = build("bert")
    plain.set_attn_implementation("sdpa")
    with pytest.raises(ValueError, match="is not supported when using the `attn_implementation` set to sdpa"):
        plain.config.output_attentions = True


def save_and_read(model: Any, folder: Path) -> Any:
    model.save_pretrained(folder)
    return type(model).from_pretrained(folder)


def test_another_attention_than_the_mechanism_is_refused(saved: tuple[Any, Path]) -> None:
    model, folder = saved
    with pytest.raises(InstallError, match=r"holds 'cosine.*attn_implementation='sdpa' would not.*attnlab\.uninstall"):
        BertForMaskedLM.from_pretrained(folder, attn_implementation="sdpa")
    model.set_attn_implementation(model.config._attn_implementation)
    for name in ("eager", "sdpa", {"": "eager"}):
        with pytest.raises(InstallError, match=r"would switch off the mechanism.*attnlab\.uninstall"):
            model.set_attn_implementation(name)
    outer: Any = with_loss("bert")
    attnlab.install(outer.bert, "dot | softmax")
    with pytest.raises(InstallError, match="would switch off the mechanism"):
        outer.set_attn_implementation("eager")


def test_the_class_of_another_model_is_refused(saved: tuple[Any, Path]) -> None:
    _, folder = saved
    with pytest.raises(InstallError, match="holds a BertForMaskedLM with a mechanism, and GPT2LMHeadModel is another"):
        GPT2LMHeadModel.from_pretrained(folder, n_embd=32, n_layer=1, n_head=2)


def test_a_config_of_such_a_folder_builds_no_model_without_mechanism(saved: tuple[Any, Path]) -> None:
    _, folder = saved
    auto: Any = AutoModel
    fresh = auto.from_config(AutoConfig.from_pretrained(folder))
    with pytest.raises(InstallError, match="holds no mechanism"):
        fresh(tokens())


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    save_with(LINE, "gpt2", tmp_path)
    file = tmp_path / "attnlab.safetensors"
    tensors = load_file(file)
    lost = next(name for name in tensors if ".attnlab." in name)
    save_file({n: t for n, t in tensors.items() if n != lost}, file, metadata={"format": "pt", "attnlab": LINE})
    (tmp_path / "SHA256SUMS").unlink()
    with pytest.raises(InstallError, match="lacks 1 learned parameters"):
        GPT2LMHeadModel.from_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["attnlab"]["mechanism"] = "dot | softmax"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InstallError, match="was trained with 'cosine"):
        GPT2LMHeadModel.from_pretrained(tmp_path)


FIRST = """
import sys
import attnlab
assert "transformers" not in sys.modules
import transformers
model = transformers.AutoModel.from_pretrained(sys.argv[1])
assert str(attnlab.mechanism_of(model)) == sys.argv[2]
"""


def test_importing_attnlab_is_enough_even_before_transformers(saved: tuple[Any, Path]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST, str(saved[1]), LINE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_models_without_a_mechanism_are_saved_and_read_as_before(tmp_path: Path) -> None:
    model: Any = with_loss("bert")
    model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    loaded: Any = BertForMaskedLM.from_pretrained(tmp_path, attn_implementation="eager")
    assert attnlab.mechanism_of(loaded) is None
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)


def test_plain_weights_saved_after_uninstalling_are_read_as_plain(tmp_path: Path) -> None:
    model = save_with(LINE, "bert", tmp_path)
    attnlab.uninstall(model)
    model.save_pretrained(tmp_path)
    assert not list_weight_files(tmp_path)
    assert not (tmp_path / SUMS).exists()
    loaded: Any = BertForMaskedLM.from_pretrained(tmp_path, attn_implementation="eager")
    assert attnlab.mechanism_of(loaded) is None
    assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)
