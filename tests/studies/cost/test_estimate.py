"""What a study will cost: exact counts, times that add up, ended runs for nothing, and nothing left behind."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig, AutoModelForSequenceClassification

from attnlab.cli import main
from attnlab.errors import StudyError
from attnlab.install import install
from attnlab.kernels import explain
from attnlab.studies.cost.estimate import estimate_cost, schedule_runs
from attnlab.studies.cost.trial import RunTiming, Trial, Trials
from attnlab.studies.cost.workload import SegmentWork, Workload, count_products, count_workload
from attnlab.studies.plan.planning import PlannedRun
from attnlab.studies.study import Study
from attnlab.training import build

from ..samples import STUDY, content, quiet, study

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


def test_a_run_takes_what_its_parts_take() -> None:
    work = Workload(
        1,
        1,
        (SegmentWork(10, 1.0, 1.0), SegmentWork(5, 1.0, 1.0)),
        3,
        1,
        2,
        1,
        1,
        2,
    )
    timing = RunTiming(7.0, (0.5, 2.0), 1.5, 0.5, 0.25, 0, 2)
    assert timing.average_updates(work) == pytest.approx(1.0)
    assert timing.add_up(work) == pytest.approx(7 + 10 * 0.5 + 5 * 2 + 3 * 1.5 + 0.5 + 2 * 0.25)


def planned(id: str, parent: str | None = None) -> PlannedRun:
    """Return a run of which only its place in the order matters."""
    return PlannedRun(id, "arm", "size", "phase", 1, study(seeds=[1]).plan()[0].run, parent)


@pytest.mark.parametrize(("workers", "seconds"), [(1, 13.0), (2, 7.0), (3, 6.0), (9, 6.0)])
def test_workers_share_runs_and_a_child_waits_for_its_parent(workers: int, seconds: float) -> None:
    runs = [planned("a"), planned("b"), planned("c"), planned("d", "a"), planned("e", "gone")]
    times = {"a": 3.0, "b": 2.0, "c": 3.0, "d": 3.0, "e": 2.0}
    assert schedule_runs(runs, times, workers) == seconds


@pytest.mark.usefixtures("here")
def test_every_phase_size_and_arm_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = list[str]()
    found = estimate_cost(study(), workers=2, say=said.append)
    assert said == [f"trying recall, tiny, {arm}" for arm in ("dot", "bypass", "slow")]
    assert [(one.arm, one.num_runs, one.num_left) for one in found.costs] == [
        ("dot", 2, 2), ("bypass", 2, 2), ("slow", 2, 2),
    ]  # fmt: skip
    assert all(one.timing is not None and one.seconds is not None and one.seconds > 0 for one in found.costs)
    assert found.seconds is not None
    assert found.notes[0].startswith("operations are counted; time is measured: ")
    assert found.kept_bytes == 6 * 2 * 3 * 4 * PARAMETERS
    assert json.loads(json.dumps(found.record()))["runs"] == 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("here")
def test_without_calibration_there_is_no_time() -> None:
    found = estimate_cost(study(seeds=[1]), method="counted")
    assert (found.seconds, found.costs[0].timing) == (None, None)
    assert found.memory == 4 * 4 * PARAMETERS
    assert found.notes[0] == "operations and memory are counted; nothing was timed, so there is no time"


@pytest.mark.usefixtures("here")
def test_runs_that_have_ended_cost_nothing(tmp_path: Path) -> None:
    study(seeds=[1]).run(tmp_path / "out", say=quiet)
    more = estimate_cost(study(), tmp_path / "out", method="counted")
    assert [(one.num_ended, one.num_left) for one in more.costs] == [(1, 1)] * 3
    assert more.kept_bytes == 3 * 2 * 3 * 4 * PARAMETERS
    said = list[str]()
    done = estimate_cost(study(seeds=[1]), tmp_path / "out", say=said.append)
    assert (done.num_left, done.seconds, done.notes, said) == (0, 0.0, (), [])
    with pytest.raises(StudyError, match="holds the study 'small', not 'other'; give another folder"):
        estimate_cost(study(name="other"), tmp_path / "out")


@pytest.mark.usefixtures("here")
def test_a_later_phase_has_the_firsts_tokenizer_and_is_said_to_lack_its_weights(tmp_path: Path) -> None:
    for name, words in (("first", "a few words of one text\n"), ("second", "others\n")):
        (tmp_path / f"{name}.txt").write_text(words * 12, encoding="utf-8")
    plain = content(seeds=[1])
    plain["data"] = {name: {"train": str(tmp_path / f"{name}.txt")} for name in ("first", "second")}
    plain["sizes"]["tiny"]["tokenizer"] = "word:60"
    phase = {
        "task": "clm",
        "task_settings": {"max_len": 16},
        "precision": "fp32",
        "segments": [{"steps": 1, "batch": 4}],
    }
    plain["phases"] = [
        {**phase, "name": "one", "data": "first"}, {**phase, "name": "two", "data": "second", "after": "one"},
    ]  # fmt: skip
    found = estimate_cost(Study.of(plain), method="counted")
    numbers = {one.phase: one.workload.num_parameters for one in found.costs if one.workload}
    assert numbers["one"] == numbers["two"]
    assert "tried from new weights, since those of the phase before do not exist yet: two" in found.notes


@pytest.mark.usefixtures("here")
def test_what_cannot_be_built_is_said_before_anything_is_run() -> None:
    odd = {"mechanism": "dot | softmax", "set": {"config.n_embd": 15}}
    with pytest.raises(StudyError, match="recall, tiny, slow: no model can be built from this config"):
        estimate_cost(study(arms__slow=odd), method="counted")
    with pytest.raises(StudyError, match="workers are at least 1, not 0"):
        estimate_cost(study(), workers=0)


def test_trials_have_a_process_of_their_own() -> None:
    run = study(seeds=[1]).plan()[0].run
    with Trials() as trials:
        trial = trials.put("a run", run, None, 0.1)
        assert trial.workload.num_parameters == PARAMETERS
        assert trial.timing is not None
        assert trial.timing.num_timed > 0
        odd = study(seeds=[1], sizes__tiny__config__n_embd=15).plan()[0].run
        with pytest.raises(StudyError, match="odd: no model can be built"):
            trials.put("odd", odd, None, 0.0)
        assert trials.put("a run", run, None, 0.0) == Trial(trial.workload, None)
    assert trials.opening > 0
    assert trials.workers is not None
    assert trials.workers.process.poll() == 0


@pytest.mark.usefixtures("here")
def test_the_command_shows_what_a_study_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    command = ["run", str(file), "--budget", "smoke", "--dry-run"]
    assert main([*command, "--workers", "2"]) == 0
    shown = capsys.readouterr().out
    assert "4,336" in shown
    assert "3 runs\n" in shown
    assert "on this machine with 2 workers (measured)" in shown
    assert main([*command, "--no-calibration"]) == 0
    assert "on this machine" not in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["costs"][0]["workload"]["num_parameters"] == 4336
    assert main(["run", str(file), "--out", str(tmp_path / "out"), "--no-calibration"]) == 2
    assert "--no-calibration is for --dry-run" in capsys.readouterr().err
    assert main([*command, "--set", "arms.slow.set.config.n_embd=15"]) == 2
    assert "recall, tiny, slow: no model can be built" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]


@pytest.mark.usefixtures("here")
def test_the_command_marks_runs_that_have_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "study.toml", str(tmp_path / "out")
    file.write_text(STUDY, encoding="utf-8")
    Study.load(file, "smoke").run(out, say=quiet)
    assert main(["run", str(file), "--budget", "smoke", "--dry-run", "--out", out]) == 0
    shown = capsys.readouterr().out
    assert shown.count("mqar  ended\n") == 3
    assert "3 runs, of which 3 have ended\nnothing is left to run\n" in shown
