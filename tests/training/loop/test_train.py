"""A run that is stopped and goes on ends as one that was not, to the bit; what does not belong to it is refused."""

import dataclasses
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from attnlab.errors import TrainingError
from attnlab.training import Data, Optimizer, Segment, Tuning, build, read_result, train
from attnlab.training.loop import evaluation as evaluations
from attnlab.training.record.metrics import Metrics
from tests.training.runs import (
    DATA,
    Listening,
    Stopping,
    assert_same_run,
    assert_same_tensors,
    checkpoints_of,
    last_of,
    lines_of,
    losses_of,
    quiet,
    small,
    trained,
)  # fmt: skip

STAGES = (
    Segment(name="short", steps=7, batch=6, micro_batch=4, length=12),
    Segment(name="long", epochs=0.5, batch=5, window=2),
)
WATCHING: dict[str, Any] = {
    "evaluate_every": 4,
    "checkpoint_every": 3,
    "log_every": 2,
    "trace_every": 5,
    "sample_every": 6,
    "num_tokens": 3,
}
LINE = "dot | softmax | bypass(alpha=0.5, learn=true, per=head, schedule=warmup) | token_dropout(0.1)"


def full(**changes: Any) -> Any:
    """Describe a run with all that could go wrong when it goes on."""
    return small(segments=STAGES, dropout=0.2, mechanism=LINE, **WATCHING, **changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    _, result = trained(full(), folder)
    assert result.status == "finished"
    return folder


@pytest.mark.parametrize("steps", [(1,), (4, 5), (7,), (3, 8, 10)], ids=lambda steps: "-".join(map(str, steps)))
def test_a_stopped_run_ends_as_one_that_was_not(steps: tuple[int, ...], whole: Path, tmp_path: Path) -> None:
    for step in steps:
        result = train(build(full()), tmp_path, Stopping([step]))
        assert (result.status, result.step) == ("interrupted", step)
        assert read_result(tmp_path) is None
    assert train(build(full()), tmp_path, quiet()).status == "finished"
    assert_same_run(tmp_path, whole)
    keys = Counter((line["kind"], line["step"], line.get("name")) for line in lines_of(tmp_path))
    assert max(keys.values()) == 1


@pytest.mark.parametrize("which", [1, 2, 3], ids=["first", "second", "last"])
def test_a_run_stopped_amid_an_evaluation_makes_it_again(
    which: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, calls = evaluations.make_batches, []

    def interrupting(*arguments: Any) -> Any:
        calls.append(1)
        for number, batch in enumerate(plain(*arguments)):
            if len(calls) == which and number == 0:
                signal.raise_signal(signal.SIGTERM)
            yield batch

    monkeypatch.setattr(evaluations, "make_batches", interrupting)
    assert train(build(full()), tmp_path, quiet()).status == "interrupted"
    assert len(lines_of(tmp_path, "evaluation")) == which - 1
    monkeypatch.undo()
    train(build(full()), tmp_path, quiet())
    assert_same_run(tmp_path, whole)


def test_a_finished_run_is_not_repeated(whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*") if path.is_file() and path.name != "lock"}
    display = Listening()
    result = train(build(full()), whole, display)
    assert result == read_result(whole)
    assert display.said == [f"{whole}: {result.sentence}; nothing to do"]
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_best_and_last_are_both_kept_and_told_apart(tmp_path: Path) -> None:
    segment = Segment(steps=12, batch=4)
    watching: dict[str, Any] = {"evaluate_every": 2, "checkpoint_every": 100}
    job, result = trained(small("mqar", segments=(segment,), **watching, optimizer=Optimizer(lr=0.3)), tmp_path)
    assert result.best.step != result.last.step == 12
    assert f"last accuracy {result.last.value:.6g} (step 12); best accuracy" in result.sentence
    for found in (result.best, result.last):
        kept = checkpoints_of(tmp_path).load(found.step)
        job.model.load_state_dict(kept.model, strict=False)
        assert job.dev is not None
        scores, _ = evaluations.evaluate(job.model, job.task, job.dev)
        # During training GELU is one operation, which is rounded otherwise.
        assert dict(scores.figures) == pytest.approx(found.figures, rel=1e-6)


def test_a_run_stops_early_only_if_asked(tmp_path: Path) -> None:
    segment = Segment(steps=12, batch=4)
    watching: dict[str, Any] = {"evaluate_every": 1, "checkpoint_every": 100}
    changes: dict[str, Any] = {"segments": (segment,), **watching, "optimizer": Optimizer(lr=0.3)}
    _, patient = trained(small("mqar", **changes), tmp_path / "patient")
    assert patient.status == "finished"
    _, stopped = trained(small("mqar", patience=2, **changes), tmp_path / "stopped")
    assert stopped.status == "stopped early"
    assert stopped.step == stopped.best.step + 2 < 12
    assert last_of(tmp_path / "stopped").step == stopped.step
    assert train(build(small("mqar", patience=2, **changes)), tmp_path / "stopped", quiet()) == stopped


def test_watching_changes_nothing(tmp_path: Path) -> None:
    closely: dict[str, Any] = {
        "evaluate_every": 1, "checkpoint_every": 1, "log_every": 1, "trace_every": 1, "sample_every": 1,
        "prompts": ("Ada",), "sentences": ("Ada was born",), "num_tokens": 2, "num_scored": 3,
    }  # fmt: skip
    for name, watching in (("hardly", {}), ("closely", closely)):
        trained(small(dropout=0.2, **watching), tmp_path / name)
    one, other = (last_of(tmp_path / name) for name in ("hardly", "closely"))
    assert_same_tensors(one.model, other.model)
    assert_same_tensors(one.optimizer, other.optimizer)
    (line,) = [line for line in Metrics.read(tmp_path / "closely" / "metrics.jsonl") if line["kind"] == "training set"]
    assert line["step"] == one.step
    assert line["perplexity"] > 1


def test_a_caller_with_a_generator_of_its_own_changes_nothing(tmp_path: Path) -> None:
    trained(small(dropout=0.2), tmp_path / "one")
    torch.manual_seed(99)
    torch.rand(7)
    trained(small(dropout=0.2), tmp_path / "other")
    assert_same_tensors(last_of(tmp_path / "one").model, last_of(tmp_path / "other").model)
    trained(small(dropout=0.2, seed=4), tmp_path / "third")
    assert losses_of(tmp_path / "third") != losses_of(tmp_path / "one")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"optimizer": Optimizer(lr=1e-4)}, r"differs in optimizer\.lr \(0\.0001, there 0\.003\)"),
        ({"seed": 8}, r"seed \(8, there 3\)"),
        ({"data": DATA["clm"].replace(num_train=20)}, r"data\.num_train \(20, there 30\)"),
        ({"mechanism": "cosine | softmax"}, r"start\.mechanism \('cosine \| softmax', there 'dot \| softmax'\)"),
        ({"segments": (Segment(steps=9, batch=4),)}, r"segments\.0\.steps \(9, there 6\)"),
    ],
    ids=["lr", "seed", "data", "mechanism", "steps"],
)
def test_another_run_is_refused_its_folder(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    train(build(small()), tmp_path, Stopping([2]))
    with pytest.raises(TrainingError, match=said):
        train(build(small(**changes)), tmp_path, quiet())
    assert train(build(small()), tmp_path, quiet()).status == "finished"


def test_jobs_made_by_hand_are_held_against_their_checkpoint(tmp_path: Path) -> None:
    def job(**changes: Any) -> Any:
        return dataclasses.replace(build(small(**changes)), config={})

    train(job(), tmp_path / "full", Stopping([2]))
    head: dict[str, Any] = {"tuning": Tuning(mode="head"), "data": DATA["squad"]}
    train(dataclasses.replace(build(small("squad", **head)), config={}), tmp_path / "head", Stopping([2]))
    with pytest.raises(TrainingError, match="the training data has changed"):
        train(job(data=DATA["clm"].replace(num_train=20)), tmp_path / "full", quiet())
    with pytest.raises(TrainingError, match="its trained weights are not those of this model"):
        train(job(mechanism="additive | softmax"), tmp_path / "full", quiet())
    with pytest.raises(TrainingError, match=r"optimizer\.lr"):
        train(job(optimizer=Optimizer(lr=1.0)), tmp_path / "full", quiet())
    other = dataclasses.replace(build(small("squad", **head)), config={})
    with torch.no_grad():
        next(p for p in other.model.parameters() if not p.requires_grad).add_(1e-3)
    with pytest.raises(TrainingError, match="the frozen weights have changed"):
        train(other, tmp_path / "head", quiet())


def test_a_smaller_pass_goes_on_with_the_same_run(tmp_path: Path) -> None:
    train(build(small()), tmp_path, Stopping([2]))
    display = Listening()
    train(build(small(segments=(Segment(steps=6, batch=4, micro_batch=2),))), tmp_path, display)
    assert any("micro_batch [None], now [2]: rounding differs" in said for said in display.said)
    trained(small(), tmp_path / "whole")
    assert losses_of(tmp_path) == pytest.approx(losses_of(tmp_path / "whole"), rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "num_steps"),
    [
        ({"segments": (Segment(epochs=0.25, batch=4),)}, 2),
        ({"segments": (Segment(epochs=2.5, batch=4),)}, 20),
        ({"segments": (Segment(epochs=2, batch=100),)}, 2),
        ({"segments": (Segment(epochs=1, batch=8),), "data": DATA["clm"].replace(num_train=1)}, 1),
        ({"segments": (Segment(steps=2, batch=3), Segment(epochs=1, batch=10))}, 5),
    ],
    ids=["a quarter", "two and a half", "fewer than a batch", "one example", "two segments"],
)
def test_epochs_and_stages_have_the_steps_they_say(changes: dict[str, Any], num_steps: int, tmp_path: Path) -> None:
    _, result = trained(small(**changes), tmp_path)
    assert (result.status, result.step, result.num_steps) == ("finished", num_steps, num_steps)


def test_packed_rows_train_and_go_on(tmp_path: Path) -> None:
    data = Data(train=DATA["clm"].train, tokenizer="word:150", num_dev=3, is_packed=True)
    run = small(
        segments=(Segment(name="a", steps=3, batch=4, length=16), Segment(name="b", steps=3, batch=2)), data=data
    )
    trained(run, tmp_path / "whole")
    train(build(run), tmp_path / "parts", Stopping([2]))
    train(build(run), tmp_path / "parts", quiet())
    assert_same_run(tmp_path / "parts", tmp_path / "whole")
    tokens = [line["tokens"] for line in lines_of(tmp_path / "whole", "train")]
    assert max(later - earlier for earlier, later in pairwise([0, *tokens])) == 64


def test_a_folder_is_left_free_by_what_never_began(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="threads must be at least 1, not 0"):
        train(dataclasses.replace(build(small()), threads=0), tmp_path, quiet())
    with pytest.raises(TrainingError, match="leave sample_every out"):
        train(build(small("mlm", sample_every=1)), tmp_path, quiet())
    assert train(build(small()), tmp_path, quiet()).status == "finished"
