"""The workload of a run: exact counts of parameters, operations, evaluations and checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

from attnlab.install import install
from attnlab.kernels import explain
from attnlab.studies.run import workload as workload_module
from attnlab.studies.run.workload import Workload, count_products, count_workload, note_operations
from attnlab.training import build
from attnlab.training.record.files import read_json
from attnlab.training.record.folder import WORKLOAD

from ..samples import study

WEIGHTS = 16 * 48 + 16 * 16 + 16 * 64 + 64 * 16
"""Numbers in the matrices of a layer of 16 channels: projections of attention, and both of the MLP."""


PARAMETERS = 2 * 32 * 16 + WEIGHTS + (48 + 16 + 64 + 16) + 3 * 32
"""Words and positions, matrices, their biases, three norms."""


TINY = {"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 32}


def workload(**changes: Any) -> Workload:
    """Count the first run of the small study with changes."""
    job = build(study(**changes).plan()[0].run)
    job.model.train()
    return count_workload(job)


def test_parameters_steps_tokens_and_bytes_are_exact() -> None:
    found = workload()
    assert (found.num_parameters, found.num_trained) == (PARAMETERS, PARAMETERS) == (4336, 4336)
    assert (found.num_steps, found.num_tokens) == (4, 4 * 8 * 24)
    assert found.state_bytes == 4 * 4 * PARAMETERS  # weights, gradients, two moments
    assert found.checkpoint_bytes == 3 * 4 * PARAMETERS
    assert (found.num_evaluations, found.num_dev_batches) == (1, 3)


def test_a_phase_that_changes_while_training_is_counted_as_it_begins() -> None:
    line = "dot | softmax | bypass(alpha=0.5, schedule=warmup)"
    run = next(run for run in study(arms__moving=line).plan() if run.arm == "moving")
    assert count_workload(build(run.run)).operations > 0


def test_operations_are_products_head_and_attention() -> None:
    tokens, labels = 8 * 24, 8 * 4
    pairs = 8 * 2 * 24 * 24
    attention = 2 * (8 + 8) * pairs
    assert workload().segments[0].operations == 6 * (WEIGHTS * tokens + 32 * 16 * labels) + 3 * attention
    known = explain("dot | softmax", 24, causal=True, batch=8, num_heads=2, head_dim=8, dropout=0.1)
    assert known.cost.operations == attention


def test_operations_are_noted_once_and_a_count_that_fails_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, said = build(study().plan()[0].run), list[str]()
    monkeypatch.setattr(workload_module, "count_workload", lambda job: 1 / 0)
    note_operations(job, tmp_path, said.append)
    assert said == ["its operations could not be counted (ZeroDivisionError: division by zero); charts leave them out"]
    monkeypatch.undo()
    note_operations(job, tmp_path, said.append)
    assert read_json(tmp_path / WORKLOAD)["operations"] == workload().operations
    monkeypatch.setattr(workload_module, "count_workload", lambda job: 1 / 0)
    note_operations(job, tmp_path, said.append)
    assert len(said) == 1


def test_weights_that_do_not_train_cost_less() -> None:
    config = AutoConfig.for_model("gpt2", **TINY, vocab_size=32, num_labels=2)
    kind: Any = AutoModelForSequenceClassification
    model = install(kind.from_config(config), "dot | softmax")
    head = 2 * 16
    assert count_products(model, has_language_head=False) == (6 * (WEIGHTS + head), 0, 3)
    for parameter in model.transformer.parameters():
        parameter.requires_grad_(False)
    assert count_products(model, has_language_head=False) == (2 * WEIGHTS + 6 * head, 0, 1)
    model.transformer.ln_f.weight.requires_grad_(True)
    assert count_products(model, has_language_head=False) == (4 * WEIGHTS + 6 * head, 0, 3)


@pytest.mark.parametrize(
    ("evaluate_every", "checkpoint_every", "looks", "checkpoints", "kept"),
    [(None, 500, 1, 1, 1), (None, 2, 1, 2, 2), (2, 3, 2, 3, 3), (1, 1, 4, 4, 3)],
)
def test_evaluations_and_checkpoints_are_counted(
    evaluate_every: int | None, checkpoint_every: int, looks: int, checkpoints: int, kept: int
) -> None:
    found = workload(phases__recall__evaluate_every=evaluate_every, phases__recall__checkpoint_every=checkpoint_every)
    assert (found.num_evaluations, found.num_checkpoints, found.num_kept) == (looks, checkpoints, kept)


@pytest.mark.usefixtures("mixers")
def test_tables_and_weights_that_a_mixer_replaces_are_not_multiplied() -> None:
    config, head = AutoConfig.for_model("gpt2", vocab_size=32, **TINY), cast(Any, AutoModelForCausalLM)
    plain, looked_up, mixed = (
        count_products(install(head.from_config(config), line), has_language_head=True).per_token
        for line in ("dot | softmax", "dot | softmax | value_embedding", "mixer(average)")
    )
    assert plain == looked_up == 6 * WEIGHTS
    assert mixed == 6 * (WEIGHTS - 16 * 48 - 16 * 16 + 16 * 16)
