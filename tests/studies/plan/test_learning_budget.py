"""A budget that is too small to learn is found before training, and none of the shipped laptop budgets is."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from attnlab.studies.file.reading import read_design
from attnlab.studies.file.recipes import list_recipes
from attnlab.studies.plan.learning_budget import count_needed_tokens, list_budget_warnings
from attnlab.studies.plan.planning import PlannedRun
from attnlab.training import RunSpec

MEASURED = {100: 127_000, 1000: 700_000, 4000: 1_000_000}
"""Tokens after which a new GPT-2 beats the bigram of WikiText-2, by the size of its vocabulary."""


def plan_run(task: str = "clm", tokenizer: str | None = "wordpiece:100", steps: int = 20, **more: Any) -> PlannedRun:
    start: dict[str, Any] = more.pop("start", {"architecture": "gpt2"})
    segments = more.pop("segments", [{"steps": steps, "batch": 24}])
    data = {"train": "text.txt", "tokenizer": tokenizer}
    run = RunSpec.model_validate({"task": task, "start": start, "data": data, "segments": segments, **more})
    return PlannedRun("id", "baseline", "mini", "text", 1, run)


@pytest.mark.parametrize(("vocab", "tokens"), MEASURED.items())
def test_the_rule_is_below_what_was_measured_and_not_far(vocab: int, tokens: int) -> None:
    assert tokens / 2 <= count_needed_tokens(vocab) <= tokens


def test_a_short_run_is_warned_about() -> None:
    short = plan_run(task_settings={"max_len": 32})
    (warning,) = list_budget_warnings([short, dataclasses.replace(short, seed=2)])
    assert "text: at most 15,360 tokens of training are too few for a vocabulary of 100" in warning
    assert "train 92 updates" in warning
    assert not list_budget_warnings([plan_run(steps=92, task_settings={"max_len": 32})])
    (warning,) = list_budget_warnings([plan_run("mqar", None, 20)])
    assert "20 updates are too few for 'mqar' (it needs 200 at least" in warning


@pytest.mark.parametrize(
    "run",
    [
        plan_run("mqar", None, 200),
        plan_run("copy", None, 40),
        plan_run("sst2"),
        plan_run(tokenizer="word"),
        plan_run(segments=[{"epochs": 1, "batch": 8}]),
        plan_run(start={"checkpoint": "gpt2"}, tokenizer=None),
        dataclasses.replace(plan_run(), parent="another"),
    ],
)
def test_there_is_no_rule_for_other_runs(run: PlannedRun) -> None:
    assert list_budget_warnings([run]) == []


@pytest.mark.parametrize("recipe", list_recipes())
def test_no_laptop_budget_is_called_too_small(recipe: str) -> None:
    design = read_design(list_recipes()[recipe], "laptop")
    for phase in design.phases:
        for size in design.sizes.values():
            segments = [segment.model_dump() for segment in phase.segments]
            start = {"checkpoint": size.checkpoint} if size.checkpoint else {"architecture": size.architecture}
            settings = dict(phase.task_settings)
            run = plan_run(phase.task, size.tokenizer, start=start, segments=segments, task_settings=settings)
            assert list_budget_warnings([run]) == []
