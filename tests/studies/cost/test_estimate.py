"""What a study will cost: exact counts, times that add up, ended runs for nothing, and nothing left behind."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.errors import StudyError
from attnlab.studies.cost.estimate import estimate_cost, schedule_runs
from attnlab.studies.plan.planning import PlannedRun
from attnlab.studies.study import Study

from ..run.test_workload import PARAMETERS
from ..samples import STUDY, content, quiet, study


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
    assert said == [f"timing recall, tiny, {arm}" for arm in ("dot", "bypass", "slow")]
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
    said: list[str] = []
    found = estimate_cost(study(seeds=[1]), method="counted", say=said.append)
    assert said == [f"counting operations of recall, tiny, {arm}" for arm in ("dot", "bypass", "slow")]
    assert (found.seconds, found.costs[0].timing) == (None, None)
    assert found.memory == 4 * 4 * PARAMETERS
    assert found.notes[0] == "operations and memory are counted; nothing was timed"


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
    assert "timed with new weights, since those of the earlier phase do not exist yet: two" in found.notes


@pytest.mark.usefixtures("here")
def test_what_cannot_be_built_is_said_before_anything_is_run() -> None:
    odd = {"mechanism": "dot | softmax", "set": {"config.n_embd": 15}}
    with pytest.raises(StudyError, match="recall, tiny, slow: no model can be built from this config"):
        estimate_cost(study(arms__slow=odd), method="counted")
    with pytest.raises(StudyError, match="workers must be at least 1, not 0"):
        estimate_cost(study(), workers=0)


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
    assert "--no-calibration is only for --dry-run" in capsys.readouterr().err
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
    assert "3 runs, of which 3 have ended\nno runs are left\n" in shown
