"""A study at work: phases after phases, runs that diverge or crash, arms that leak, going on, and what is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import attnlab
from attnlab.cli import main
from attnlab.cli.plugin import load_plugin
from attnlab.errors import StudyError
from attnlab.studies.answers import analysis
from attnlab.studies.file.mistakes import Origin, validate_design
from attnlab.studies.ledger.database import Ledger
from attnlab.studies.study import Conclusion, Study
from attnlab.training.record.checkpoint import Checkpoints
from attnlab.training.record.files import read_json

from .samples import STUDY, content, quiet, study

TEXT = {
    "name": "text", "task": "clm", "task_settings": {"max_len": 16}, "data": "text", "precision": "fp32",
    "segments": [{"steps": 2, "batch": 4}], "smallest": 1.0,
}  # fmt: skip


FINE = {
    "name": "fine", "task": "sst2", "task_settings": {"max_len": 16}, "data": "labels", "after": "text",
    "precision": "fp32", "segments": [{"steps": 1, "batch": 4}], "smallest": 1.0,
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    words = ["good", "fine", "dull", "poor"]
    for split, number in (("train", 12), ("dev", 6)):
        rows = [{"sentence": f"the play was {words[at % 4]}", "label": int(at % 4 < 2)} for at in range(number)]
        (folder / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
        (folder / f"{split}.txt").write_text("\n".join(str(row["sentence"]) for row in rows) + "\n", encoding="utf-8")
    return folder


def two_phases(labels: Path, **changes: Any) -> Study:
    """Return a study of two arms that pretrains on text and is fine-tuned on labels."""
    plain = content()
    plain["arms"] = {"dot": "dot | softmax", "bypass": "dot | softmax | bypass(alpha=0.5)"}
    plain["data"] = {
        "text": {"train": str(labels / "train.txt"), "dev": str(labels / "dev.txt")},
        "labels": {"train": str(labels / "train.jsonl"), "dev": str(labels / "dev.jsonl")},
    }
    plain["sizes"]["tiny"]["tokenizer"] = "word:60"
    plain["phases"] = [{**TEXT, **changes}, FINE]
    return Study.of(plain)


def verdicts(conclusion: Conclusion) -> dict[tuple[str, str], str]:
    """Return the verdicts by phase and arm."""
    return {(one.phase, one.arm): one.verdict for one in conclusion.answers}


def test_a_study_runs_from_its_public_name_and_is_not_repeated(tmp_path: Path) -> None:
    file, said = tmp_path / "study.toml", list[str]()
    file.write_text(STUDY, encoding="utf-8")
    found = attnlab.Study.load(file).run(tmp_path / "out", 2, said.append)
    assert found.is_whole
    assert (found.num_ended, found.num_runs, found.failed) == (6, 6, {})
    assert verdicts(found) == dict.fromkeys([("recall", "bypass"), ("recall", "slow")], "TOO FEW SEEDS (n < 5)")
    assert said[0] == "dot: auditing dot | softmax"
    assert said[3].startswith("warning: recall: 4 updates are too few for 'mqar'")
    assert said[4].startswith("1/6 recall, tiny, dot, seed 1: finished, accuracy")
    assert (tmp_path / "out" / "study.toml").read_text(encoding="utf-8") == STUDY
    again = list[str]()
    assert attnlab.Study.load(tmp_path / "out" / "study.toml").run(tmp_path / "out", 2, again.append).num_ended == 6
    assert again == []
    more = attnlab.Study.load(file, assign={"seeds": [1, 2, 3]}).run(tmp_path / "out", 1, again.append)
    assert [line.partition(":")[0] for line in again] == [
        "7/9 recall, tiny, dot, seed 3", "8/9 recall, tiny, bypass, seed 3", "9/9 recall, tiny, slow, seed 3",
    ]  # fmt: skip
    assert more.num_ended == 9
    ledger = Ledger(tmp_path / "out" / "ledger.sqlite", is_new=False)
    assert [len(json.loads(design)["seeds"]) for design in ledger.events("design")] == [2, 3]
    ledger.close()


def test_another_study_in_the_folder_is_refused(tmp_path: Path) -> None:
    study(seeds=[1]).run(tmp_path, say=quiet)
    with pytest.raises(StudyError, match="holds another study: its study is 'small', not 'other'"):
        study(name="other").run(tmp_path, say=quiet)


def test_a_second_phase_starts_from_the_firsts_weights_and_is_comparable(labels: Path, tmp_path: Path) -> None:
    made = two_phases(labels)
    found = made.run(tmp_path / "out", say=quiet)
    assert found.failed == {}
    assert set(verdicts(found).values()) == {"TOO FEW SEEDS (n < 5)"}  # and not NOT COMPARABLE: their starts are pairs
    runs = {(run.phase, run.arm, run.seed): run for run in made.plan()}
    child = tmp_path / "out" / "runs" / runs["fine", "bypass", 2].id
    parent = tmp_path / "out" / "runs" / runs["text", "bypass", 2].id
    last = Checkpoints(parent / "checkpoints", quiet).load_last()
    assert last is not None
    own = read_json(child / "pairing.json")["weights"]
    fresh = read_json(parent / "pairing.json")["weights"]
    from attnlab.training.loop.identity import hash_tensor

    body = [name for name in own if name.startswith("transformer.") and name in last.model]
    assert body
    assert all(own[name] == hash_tensor(last.model[name]) for name in body)
    assert own["transformer.wte.weight"] != fresh["transformer.wte.weight"]


def test_a_shared_phase_is_trained_once_and_said_to_be(labels: Path, tmp_path: Path) -> None:
    plain = two_phases(labels, is_shared=True, smallest=None)
    found = plain.run(tmp_path / "out", say=quiet)
    assert found.num_runs == 2 + 4
    assert "'text' was trained once per arm: seeds only vary what comes after it" in found.answers[0].notes


def test_what_comes_after_a_run_that_diverged_is_given_up_and_counted(labels: Path, tmp_path: Path) -> None:
    said = list[str]()
    made = two_phases(labels, optimizer={"name": "sgd", "lr": 1e11}, clip=1e11, segments=[{"steps": 8, "batch": 4}])
    found = made.run(tmp_path / "out", say=said.append)
    assert found.is_whole
    assert found.num_ended == 4
    assert any(": diverged" in line for line in said)
    assert found.failed == {
        f"fine, tiny, {arm}, seed {seed}": "the run it starts from has not finished"
        for arm in ("dot", "bypass") for seed in (1, 2)
    }  # fmt: skip
    assert verdicts(found)["text", "bypass"].startswith("NOT COMPARABLE (no")
    assert verdicts(found)["fine", "bypass"].startswith("NOT COMPARABLE (no")


def test_a_run_that_crashes_is_tried_again_given_up_and_counted_as_failed(tmp_path: Path) -> None:
    said = list[str]()
    # 15 is no multiple of 2 heads, which only a model that is built can say.
    odd = {"mechanism": "dot | softmax", "set": {"config.n_embd": 15}}
    found = study(arms__slow=odd).run(tmp_path / "out", say=said.append)
    assert found.is_whole
    assert list(found.failed) == ["recall, tiny, slow, seed 1", "recall, tiny, slow, seed 2"]
    assert "no model can be built from this config" in found.failed["recall, tiny, slow, seed 1"]
    assert sum("seed 1 failed: " in line for line in said) == 2
    assert verdicts(found) == {
        ("recall", "bypass"): "TOO FEW SEEDS (n < 5)",
        ("recall", "slow"): "NOT COMPARABLE (none of the 2 runs of it has a figure)",
    }
    ledger = Ledger(tmp_path / "out" / "ledger.sqlite", is_new=False)
    assert len(ledger.failures()) == 4
    assert len(ledger.given_up()) == 2
    ledger.close()
    again = list[str]()
    assert study(arms__slow=odd).run(tmp_path / "out", say=again.append).failed == found.failed


def test_a_folder_that_is_damaged_costs_its_run_alone(tmp_path: Path) -> None:
    made = study(seeds=[1])
    broken = tmp_path / "out" / "runs" / made.plan()[0].id
    broken.mkdir(parents=True)
    (broken / "result.json").write_text("{", encoding="utf-8")
    found = made.run(tmp_path / "out", say=quiet)
    assert list(found.failed) == ["recall, tiny, dot, seed 1"]
    assert "is not JSON" in next(iter(found.failed.values()))
    assert found.num_ended == 2


def test_a_run_that_ended_unseen_is_taken_in(tmp_path: Path) -> None:
    made = study(seeds=[1])
    made.run(tmp_path / "out", say=quiet)
    (tmp_path / "out" / "ledger.sqlite").unlink()
    said = list[str]()
    assert made.run(tmp_path / "out", say=said.append).is_whole
    ledger = Ledger(tmp_path / "out" / "ledger.sqlite", is_new=False)
    assert [row[0] for row in ledger.execute("SELECT worker FROM attempts")] == ["found"] * 3
    ledger.close()


def test_a_study_that_was_moved_goes_on(labels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, stopped = two_phases(labels), list[int]()
    from attnlab.training import Display

    advance = Display.advance

    def stop_once(display: Display, step: int, *more: Any) -> float:
        if not stopped and step == 1 and len(list((tmp_path / "out").glob("runs/*/result.json"))) == 4:
            stopped.append(step)
            raise StudyError("stopped in the middle")
        return advance(display, step, *more)

    monkeypatch.setattr(Display, "advance", stop_once)
    with monkeypatch.context() as limited:
        limited.setattr("attnlab.studies.run.execution.MAX_FAILURES", 1)
        first = made.run(tmp_path / "out", say=quiet)
    assert len(first.failed) == 1
    (tmp_path / "out").rename(tmp_path / "moved")
    found = made.run(tmp_path / "moved", say=quiet)
    assert found.failed == {}
    assert found.num_ended == 8


def test_an_arm_that_sees_the_future_is_not_trained_unless_asked_for(tmp_path: Path) -> None:
    said = list[str]()
    leaking = "dot | softmax | mask(after)"
    found = study(arms__slow=leaking, seeds=[1]).run(tmp_path / "out", say=said.append)
    assert "not trained, since they have access to future tokens: slow (has_leaking = true trains them)" in said
    assert found.num_runs == 2
    assert verdicts(found)["recall", "slow"] == "NOT COMPARABLE (its audit finds a leak)"
    trained = study(arms__slow=leaking, seeds=[1], has_leaking=True).run(tmp_path / "out", say=quiet)
    assert trained.num_runs == 3
    answer = next(one for one in trained.answers if one.arm == "slow")
    assert answer.verdict == "NOT COMPARABLE (its audit finds a leak)"
    assert answer.comparison is not None
    # The same name for another mechanism is audited anew.
    swapped = study(arms__bypass=leaking, arms__slow="cosine | softmax", seeds=[1]).run(tmp_path / "out", say=quiet)
    assert verdicts(swapped)["recall", "bypass"].startswith("NOT COMPARABLE")
    assert verdicts(swapped)["recall", "slow"] == "TOO FEW SEEDS (n < 5)"


def test_a_baseline_that_sees_the_future_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="the baseline 'dot' has access to future tokens"):
        study(arms__dot="dot | softmax | mask(after)", seeds=[1]).run(tmp_path / "out", say=quiet)


def test_auto_is_the_same_for_all_runs_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from attnlab.training.loop.precision import Precision

    choices = [Precision("fp32", "first"), Precision("bf16", "second")]
    monkeypatch.setattr("attnlab.studies.study.choose_precision", lambda *_: choices.pop(0))
    made = study(phases__recall__precision="auto", seeds=[1])
    made.run(tmp_path / "out", say=quiet)
    study(phases__recall__precision="auto", seeds=[1, 2]).run(tmp_path / "out", say=quiet)
    kept = [read_json(file)["precision"] for file in (tmp_path / "out").glob("runs/*/config.json")]
    assert kept == ["fp32"] * 6


def test_the_command_shows_a_plan_and_runs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    command = ["run", str(file), "--budget", "smoke"]
    assert main([*command, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert Study.load(file, "smoke").plan()[0].id in shown
    assert "3 runs" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["study.toml"]
    assert main([*command, "--no-report"]) == 0
    assert (tmp_path / "out" / "small" / "ledger.sqlite").exists()
    capsys.readouterr()
    assert main([*command, "--out", str(tmp_path / "other"), "--set", "seeds=[4, 5]", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["runs"], record["ended"]) == (6, 6)
    assert record["answers"][0]["comparison"]["verdict"] == "TOO FEW SEEDS (n < 5)"
    assert main([*command, "--out", str(tmp_path / "other"), "--set", "arms.slow.set.config.n_embd=15"]) == 1
    shown = capsys.readouterr().out
    assert "failed: recall, tiny, slow, seed 1: no model can be built from this config" in shown
    assert "the same command retries the runs that failed" in shown
    for wrong in (["--workers", "0"], ["--threads", "0"]):
        assert main([*command, "--out", str(tmp_path / "new"), *wrong]) == 2
    assert not (tmp_path / "new").exists()


OWN = """
from dataclasses import dataclass
import torch
from attnlab import Weights, stage

@stage("edited")
@dataclass(frozen=True)
class Edited(Weights):
    def __call__(self, scores, n, p):
        return {}
"""


def test_a_phase_that_was_edited_is_audited_anew_and_what_it_gave_before_is_said(
    tmp_path: Path, own_stages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def audited(line: str, causal: bool, checks: list[str], progress: Any) -> attnlab.audits.Audit:
        asked.append(line)
        return attnlab.audit(line, causal=causal, checks=["gradient flow"])

    monkeypatch.setattr("attnlab.studies.study.audit", audited)
    said: list[str] = []
    for body in ("torch.relu(scores) / n", "torch.relu(scores) / (2 * n)"):
        (tmp_path / "own.py").write_text(OWN.format(body), encoding="utf-8")
        attnlab.mechanisms.REGISTRY.pop("edited", None)
        load_plugin(str(tmp_path / "own.py"))
        plain = content(arms__own="dot | edited", seeds=[1])
        once = Study(validate_design(plain, Origin("a test")), plugins=(str(tmp_path / "own.py"),))
        conclusion = once.run(tmp_path / "out", say=said.append)
    assert (asked.count("dot | edited"), asked.count("dot | softmax")) == (2, 1)
    assert any("1 result is not of the study as it is now" in line and "1 of 'own'" in line for line in said)
    assert [one.check for one in conclusion.findings if one.check == "results left out"] == ["results left out"]


def test_one_run_of_the_command_computes_its_answers_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = Mock(wraps=analysis.analyse)
    monkeypatch.setattr(analysis, "analyse", counted)
    file = tmp_path / "small.toml"
    file.write_text(STUDY, encoding="utf-8")
    out = str(tmp_path / "out")
    assert main(["run", str(file), "--budget", "smoke", "--out", out]) == 0
    assert "TOO FEW SEEDS" in capsys.readouterr().out
    assert "TOO FEW SEEDS" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert main(["compare", out]) == 0
    assert "TOO FEW SEEDS" in capsys.readouterr().out
    assert counted.call_count == 1


MIXERS = """
import attnlab
from tests.mixers import Average, Peeking

attnlab.mixer("averaging")(type("Averaging", (Average,), {}))
attnlab.mixer("looking_ahead")(type("LookingAhead", (Peeking,), {}))
"""


def test_mixers_are_arms_of_a_study_and_one_that_sees_the_future_is_set_apart(tmp_path: Path, own_stages: None) -> None:
    plugin = tmp_path / "own.py"
    plugin.write_text(MIXERS, encoding="utf-8")
    load_plugin(str(plugin))
    plain = content(arms__averaging="mixer(averaging)", arms__peek="mixer(looking_ahead)")
    conclusion = Study(validate_design(plain, Origin("a test")), plugins=(str(plugin),)).run(
        tmp_path / "out", say=quiet
    )
    words = {answer.arm: str(answer.verdict) for answer in conclusion.answers}
    assert words["peek"].startswith("NOT COMPARABLE")
    assert words["averaging"].startswith("TOO FEW SEEDS")
    ledger = Ledger(tmp_path / "out" / "ledger.sqlite", is_new=False)
    assert {row.arm for row in ledger.runs() if row.id in ledger.results()} == {"dot", "bypass", "slow", "averaging"}
