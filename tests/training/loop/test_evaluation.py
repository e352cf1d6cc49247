"""Figures on held-out examples do not depend on batches, on the run's seed, or on the mode the model is in."""

import dataclasses
from typing import Any

import pytest
import torch

from attnlab.training import build, evaluate
from attnlab.training.loop.evaluation import EvaluationStoppedError, make_record
from attnlab.training.plain import check_plain, encode_nonfinite
from tests.training.runs import small


def evaluated(task: str = "clm", **changes: Any) -> Any:
    """Return a job and its dev examples."""
    job = build(small(task, **changes))
    assert job.dev is not None
    return job, job.dev


@pytest.mark.parametrize("task", ["clm", "mlm", "squad", "mqar"])
def test_figures_do_not_depend_on_batches(task: str) -> None:
    job, dev = evaluated(task)
    job.model.double()
    one, _ = evaluate(job.model, job.task, dev)
    other, _ = evaluate(job.model, job.task, dataclasses.replace(dev, batch=1))
    assert dict(one.figures) == pytest.approx(dict(other.figures), rel=1e-9)


def test_figures_do_not_depend_on_the_mode_and_leave_it_as_it_was() -> None:
    job, dev = evaluated(dropout=0.5)
    for is_training in (True, False):
        job.model.train(is_training)
        state = torch.get_rng_state()
        scores, _ = evaluate(job.model, job.task, dev)
        assert job.model.training is is_training
        assert torch.equal(torch.get_rng_state(), state)
        assert dict(scores.figures) == dict(evaluate(job.model, job.task, dev)[0].figures)


def test_what_is_hidden_is_the_same_for_every_seed() -> None:
    (one, dev), (other, _) = evaluated("mlm", seed=1), evaluated("mlm", seed=2)
    other.model.load_state_dict(one.model.state_dict())
    assert evaluate(one.model, one.task, dev)[0].figures == evaluate(other.model, other.task, dev)[0].figures


@pytest.mark.parametrize("task", ["clm", "mlm", "squad", "mqar"])
def test_a_request_to_stop_is_honoured_between_batches(task: str) -> None:
    job, dev = evaluated(task)
    passes: list[int] = []
    job.model.register_forward_hook(lambda *_: passes.append(1))
    asked: list[int] = []

    def is_stopped() -> bool:
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(EvaluationStoppedError):
        evaluate(job.model, job.task, dataclasses.replace(dev, batch=1), is_stopped)
    assert len(passes) >= 2


def test_answers_are_plain_data() -> None:
    for task in ("clm", "squad"):
        job, dev = evaluated(task)
        answers = encode_nonfinite(make_record(*evaluate(job.model, job.task, dev)))
        check_plain(answers, "answers")
        assert len(answers["ids"]) == len(dev.examples)
        assert (answers["predictions"] is None) == (task == "clm")
        assert all(len(values) == len(dev.examples) for values in answers["per_example"].values())
