"""Trainer resumes training of a model with a mechanism to the bit, and gives back the best model at the end."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import Trainer, TrainingArguments

import attnlab
from attnlab.errors import InstallError
from tests.install.models import tokens, with_loss

LINE = "cosine(scale=learned) | softmax | bypass(alpha=0.5, learn=true) | share(qk)"


def make(folder: Path, line: str | None = LINE, **settings: Any) -> Any:
    """Make a Trainer of a small model with dropout, which is the same each time."""
    model = with_loss("gpt2")
    if line is not None:
        attnlab.install(model, line)
    rows = [{"input_ids": row, "labels": row} for row in tokens(6)]
    chosen = {
        "max_steps": 4, "per_device_train_batch_size": 2, "save_steps": 2, "report_to": [], "use_cpu": True,
        "disable_tqdm": True, "learning_rate": 0.01, **settings,
    }  # fmt: skip
    return Trainer(model, TrainingArguments(str(folder), **chosen), train_dataset=rows, eval_dataset=rows)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Train four steps, with checkpoints after two and four; the model after two is the best one and is loaded."""
    trainer = make(
        tmp_path_factory.mktemp("whole"), load_best_model_at_end=True, eval_strategy="steps", eval_steps=2,
        metric_for_best_model="step", greater_is_better=False,
    )  # fmt: skip
    evaluate = trainer.evaluate
    trainer.evaluate = lambda *given, **more: evaluate(*given, **more) | {"eval_step": trainer.state.global_step}
    trainer.train()
    return trainer


def test_the_best_model_is_loaded_at_the_end(whole: Any) -> None:
    assert whole.state.best_model_checkpoint.endswith("checkpoint-2")
    best = attnlab.load(whole.state.best_model_checkpoint)
    assert_same(whole.model, best)
    last = attnlab.load(Path(whole.args.output_dir) / "checkpoint-4")
    assert not torch.equal(last.state_dict()["lm_head.weight"], best.state_dict()["lm_head.weight"])


def test_training_resumes_to_the_bit(whole: Any, tmp_path: Path) -> None:
    shutil.copytree(Path(whole.args.output_dir) / "checkpoint-2", tmp_path / "checkpoint-2")
    resumed = make(tmp_path)
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == 4
    assert_same(resumed.model, attnlab.load(Path(whole.args.output_dir) / "checkpoint-4"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (None, "and this GPT2LMHeadModel has no mechanism; call attnlab.install(model, '"),
        ("dot | softmax", "and this GPT2LMHeadModel has 'dot | softmax'; call attnlab.install(model, '"),
    ],
)
def test_a_checkpoint_of_another_mechanism_is_refused(whole: Any, line: str | None, said: str, tmp_path: Path) -> None:
    with pytest.raises(InstallError) as raised:
        make(tmp_path, line).train(resume_from_checkpoint=f"{whole.args.output_dir}/checkpoint-2")
    assert said in str(raised.value)


def test_plain_weights_are_refused_and_an_empty_folder_is_left_to_trainer(tmp_path: Path) -> None:
    trainer = make(tmp_path)
    (tmp_path / "checkpoint-1").mkdir()
    with pytest.raises(ValueError, match="Can't find a valid checkpoint"):
        trainer.train(resume_from_checkpoint=True)
    save_file({"a": torch.zeros(1)}, tmp_path / "checkpoint-1" / "model.safetensors")
    with pytest.raises(InstallError, match="holds weights without a mechanism, and this GPT2LMHeadModel has 'cosine"):
        trainer.train(resume_from_checkpoint=True)


def test_a_model_without_a_mechanism_resumes_as_before(tmp_path: Path) -> None:
    trainer = make(tmp_path, None, max_steps=1, save_steps=1)
    trainer.train()
    again = make(tmp_path, None, max_steps=1, save_steps=1, seed=3)
    again.train(resume_from_checkpoint=True)
    assert_same(again.model, trainer.model)


def assert_same(one: Any, other: Any) -> None:
    """Compare the weights of two models bit for bit."""
    weights = other.state_dict()
    assert one.state_dict().keys() == weights.keys()
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, weights[name]), name
