"""Samples, sentences and evaluations on the way: when they are due, what is written, and what is refused in time."""

import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import AttnlabError, TrainingError
from attnlab.training import build, late_step, train
from tests.training.runs import lines_of, quiet, small, trained


def test_each_is_written_when_it_is_due_and_at_the_end(tmp_path: Path) -> None:
    watching: dict[str, Any] = {
        "evaluate_every": 4, "log_every": 4, "trace_every": 5, "sample_every": 4, "prompts": ("Ada", ""),
        "sentences": ("Ada was born",), "num_tokens": 2,
    }  # fmt: skip
    trained(small(**watching), tmp_path)
    steps = {
        kind: [line["step"] for line in lines_of(tmp_path, kind)]
        for kind in ("train", "evaluation", "trace", "sample", "sentence")
    }
    assert steps == {
        "train": [4, 6], "evaluation": [4, 5, 6], "trace": [5, 6], "sample": [4, 4, 6, 6], "sentence": [4, 6],
    }  # fmt: skip
    names = [line["name"] for line in lines_of(tmp_path, "sample")]
    assert names == ["prompt 0", "prompt 1"] * 2
    sentence = lines_of(tmp_path, "sentence")[-1]
    assert sentence["text"] == "Ada was born"
    assert sentence["loss"] > 0
    assert sorted(path.name for path in (tmp_path / "predictions").iterdir()) == [
        "step-00000004.json", "step-00000005.json", "step-00000006.json",
    ]  # fmt: skip
    answers = json.loads((tmp_path / "predictions" / "step-00000006.json").read_text(encoding="utf-8"))
    evaluation = lines_of(tmp_path, "evaluation")[-1]
    assert answers["perplexity"] == evaluation["perplexity"] > 1
    assert len(answers["per_example"]["line_loss"]) == len(answers["ids"]) == 7
    assert answers["reference"]["num_documents"] == 7


@pytest.mark.parametrize(("num_steps", "step"), [(1, 1), (2, 2), (4, 4), (5, 4), (6, 5), (10, 8), (1000, 800)])
def test_the_late_evaluation_comes_after_four_fifths(num_steps: int, step: int) -> None:
    assert late_step(num_steps) == step


def test_the_late_evaluation_counts_neither_for_the_best_nor_for_patience(tmp_path: Path) -> None:
    _, result = trained(small(evaluate_every=3), tmp_path)
    assert [line["step"] for line in lines_of(tmp_path, "evaluation")] == [3, 5, 6]
    assert result.last is not None
    assert result.best is not None
    assert (result.last.step, result.best.step) == (6, 6)
    assert result.last.num_documents == 7


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task": "mlm", "sample_every": 1}, "which a run of 'mlm' does not have; leave sample_every out"),
        ({"task": "mqar", "sample_every": 1}, "samples need a causal model with a tokenizer"),
        ({"sample_every": 9, "num_tokens": 65}, "num_tokens = 65 more are sampled: 65 positions"),
        ({"sample_every": 9, "prompts": ("a " * 30,)}, "num_tokens = 40 more are sampled: 70 positions"),
        ({"sample_every": 9, "sentences": ("a " * 63,)}, "has 65 tokens, and the model has positions for 64"),
    ],
    ids=["mlm", "probe", "sample", "prompt", "sentence"],
)
def test_what_could_not_be_watched_is_refused_before_training(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match=said):
        train(build(small(**changes)), tmp_path, quiet())
    assert lines_of(tmp_path) == []


def test_a_sample_may_use_every_position(tmp_path: Path) -> None:
    watching: dict[str, Any] = {"sample_every": 9, "num_tokens": 64, "sentences": ("a " * 62,)}
    _, result = trained(small(**watching), tmp_path)
    assert result.status == "finished"


def test_an_empty_sentence_is_refused_before_training(tmp_path: Path) -> None:
    run = small(sample_every=9, prompts=(), sentences=("",))
    job = build(run)
    job.tokenizer.bos_token = None
    with pytest.raises(AttnlabError, match="leaves none to predict"):
        train(job, tmp_path, quiet())
