"""A run that diverges is a result: it says where, keeps the last weights that were numbers, and is not repeated."""

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.training import (
    Data,
    Divergence,
    Evaluation,
    Optimizer,
    Result,
    Schedule,
    Segment,
    build,
    read_result,
    train,
)  # fmt: skip
from tests.training.runs import Listening, last_of, losses_of, quiet, small, trained

WILD: dict[str, Any] = {
    "segments": (Segment(name="wild", steps=30, batch=4),), "optimizer": Optimizer(lr=1e6),
    "schedule": Schedule(warmup=0),
}  # fmt: skip


def scaled(factor: Callable[[int], float], **changes: Any) -> Any:
    """Build a job whose loss at every update, counted from 0, is that of its task times a factor."""
    job = build(small(segments=(Segment(name="only", steps=24, batch=4),), **changes))
    plain, calls = type(job.task).loss, []

    class Scaled(type(job.task)):  # type: ignore[misc]
        def loss(self, model: Any, batch: Any) -> Any:
            calls.append(1)
            return plain(self, model, batch) * factor(len(calls) - 1)

    return dataclasses.replace(job, task=Scaled(**vars(job.task)))


def poisoned(step: int) -> Any:
    """Build a job whose task says NaN at one update."""
    return scaled(lambda at: math.nan if at == step else 1.0)


def test_a_wild_learning_rate_diverges(tmp_path: Path) -> None:
    job, result = trained(small(**WILD), tmp_path)
    assert result.status == "diverged"
    found = result.divergence
    assert found.step == result.step < 30
    assert (found.segment, found.epoch, found.lr) == ("wild", found.step // 8, pytest.approx(1e6, rel=1))
    rows = job.streams[0].arrangement.rows(*divmod(found.step, 8))
    assert found.examples == job.streams[0].names(rows)
    assert len(found.weight_norms) == 5
    assert max(found.weight_norms.values()) > 1e3


def test_nan_ends_a_run_with_the_weights_before_it(tmp_path: Path) -> None:
    result = train(poisoned(5), tmp_path, quiet())
    assert (result.status, result.step) == ("diverged", 5)
    assert "is not finite" in result.sentence
    assert math.isnan(result.divergence.loss)  # type: ignore[union-attr]
    again = read_result(tmp_path)
    assert again is not None
    assert again.divergence is not None
    assert math.isnan(again.divergence.loss)
    assert again.record() == result.record()
    assert "NaN" in (tmp_path / "result.json").read_text(encoding="utf-8")
    kept = last_of(tmp_path)
    assert kept.step == 5
    assert all(bool(tensor.isfinite().all()) for tensor in kept.model.values())
    train(scaled(lambda at: 1.0), tmp_path / "whole", quiet())
    assert losses_of(tmp_path) == losses_of(tmp_path / "whole")[:5]
    display = Listening()
    assert train(poisoned(5), tmp_path, display).status == "diverged"
    assert display.said[-1].endswith("nothing to do")


def test_weights_that_are_no_numbers_diverge_at_once(tmp_path: Path) -> None:
    job = build(small())
    with torch.no_grad():
        next(job.model.parameters())[0] = math.nan
    result = train(job, tmp_path, quiet())
    assert (result.status, result.step, result.loss) == ("diverged", 0, None)
    assert any(math.isnan(norm) for norm in result.divergence.weight_norms.values())  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("task", "watching"),
    [
        ("clm", {"evaluate_every": 1}),
        ("squad", {"evaluate_every": 1}),
        ("clm", {"sample_every": 1, "num_tokens": 2}),
        ("clm", {"sample_every": 1, "prompts": (), "sentences": ("Ada was born",)}),
    ],
    ids=["clm", "squad", "sample", "sentence"],
)
def test_a_model_whose_answers_are_no_numbers_has_diverged(task: str, watching: dict[str, Any], tmp_path: Path) -> None:
    wild = {**WILD, "optimizer": Optimizer(lr=1e30)}
    job, result = trained(small(task, **watching, **wild), tmp_path)
    assert (result.status, result.step) == ("diverged", 1)
    found = result.divergence
    assert "NaN or infinity" in found.reason
    assert found.examples == job.streams[0].names(job.streams[0].arrangement.rows(0, 0))
    assert (found.segment, found.epoch, found.lr) == ("wild", 0, 1e30)
    assert math.isfinite(found.loss)
    assert last_of(tmp_path).step == 1


def test_a_loss_that_grows_past_its_bound_has_diverged(tmp_path: Path) -> None:
    def factor(at: int) -> float:
        return 6.0 if at >= 14 else 1.0

    free = train(scaled(factor, divergence=None), tmp_path / "free", quiet())
    assert free.status == "finished"
    losses = losses_of(tmp_path / "free")
    means = {at: sum(losses[at - 9 : at + 1]) / sum(losses[:10]) for at in range(19, 24)}
    result = train(scaled(factor, divergence=4.0), tmp_path / "bound", quiet())
    assert result.status == "diverged"
    assert result.step == next(at for at, mean in means.items() if mean > 4.0) > 19
    assert "the mean loss of the last steps is over 4 times the first" in result.sentence
    assert result.divergence is not None
    assert result.divergence.loss == losses[result.step]
    assert last_of(tmp_path / "bound").step == result.step
    assert losses_of(tmp_path / "bound") == losses[: result.step]


def test_results_are_read_as_they_were_written() -> None:
    divergence = Divergence(3, "why", math.inf, math.nan, 0.1, "train", 1, ["7"], {"a": math.inf})
    results = [
        Result("finished", 4, 4, 0.5, Evaluation(4, "f1", {"f1": 1.0}), Evaluation(2, "f1", {"f1": 2.0}), None, 9, 1.5),
        Result("diverged", 3, 4, None, None, None, divergence),
        Result("interrupted", 1, 4, parameters={"trained": 3}),
    ]
    for result in results:
        plain = json.loads(json.dumps(result.record(), allow_nan=False))
        assert Result.of(plain).record() == result.record()
    assert results[0].sentence == "finished at step 4 of 4; last f1 1 (step 4); best f1 2 (step 2)"
    assert results[1].sentence == "diverged at step 3 of 4: why"


def test_a_run_without_dev_examples_finishes_without_figures(tmp_path: Path, texts: Path) -> None:
    text = texts / "lines.txt"
    text.write_text("Ada was born\nBruno worked as a baker\n" * 8, encoding="utf-8")
    data = Data(train=str(text), tokenizer="word:20")
    _, result = trained(small(data=data), tmp_path)
    assert (result.status, result.last, result.best) == ("finished", None, None)
