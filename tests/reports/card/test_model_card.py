"""A model card says what the run was, how its model loads and what its study concluded, and claims no more."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import attnlab
from attnlab.cli import main
from attnlab.reports.card import write_model_card
from attnlab.reports.card.stage_files import StageFile
from attnlab.studies.answers.study_folder import PLAN
from attnlab.training.job.restore import restore
from attnlab.visible import make_visible
from tests.cli.test_export import LINE, SHORT, card, ids_of, logits_of
from tests.studies.moments import Moment
from tests.training.runs import small, trained


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def test_a_baseline_is_plain_after_one_line_as_its_card_says(tmp_path: Path) -> None:
    job, _ = trained(small(segments=SHORT), tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    assert "attnlab.uninstall(attnlab.load(FOLDER)).save_pretrained(ANOTHER)" in card(tmp_path / "out")
    read = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert attnlab.mechanism_of(read) is not None
    attnlab.uninstall(attnlab.load(tmp_path / "out")).save_pretrained(tmp_path / "plain")
    plain: Any = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    with torch.no_grad():
        torch.testing.assert_close(plain(**ids_of(job)).logits, logits_of(job))


def test_a_mechanism_of_its_own_is_not_called_plain(tmp_path: Path) -> None:
    trained(small(segments=SHORT, mechanism=LINE), tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    assert "uninstall" not in card(tmp_path / "out")
    assert "Without it, this folder is refused: the model would be built" in card(tmp_path / "out")


def test_the_card_says_what_the_run_was(tmp_path: Path) -> None:
    trained(small(segments=SHORT), tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    text = card(tmp_path / "out")
    _, front, _ = text.split("---\n", 2)
    facts = {name: json.loads(value) for name, _, value in (line.partition(": ") for line in front.splitlines())}
    assert facts == {
        "library_name": "attnlab", "tags": ["attnlab", "attention", "gpt2", "clm"], "pipeline_tag": "text-generation",
    }  # fmt: skip
    for said in (
        "step 2 of 2; the run is finished", "gpt2 (GPT2LMHeadModel)", "- **Seed:** 3", "- **Precision:** fp32",
        "train: 2 steps of 4 rows", "embedded:squad?articles=6&people=1", "Hash of the batches of segment 1:** `",
        "| perplexity |", "The run is not part of a study", f"- **torch:** {torch.__version__}", "one run of one seed",
    ):  # fmt: skip
        assert said in text
    check_hidden_characters(tmp_path / "run")


def check_hidden_characters(run: Path) -> None:
    """Check that a card shows control characters and overrides of every text that it takes from others as escapes."""
    hidden, restored = "a\x1b[31m\u202eb\x9b", restore(run)
    assert restored.state.last is not None
    last = dataclasses.replace(restored.state.last, primary=hidden, figures={hidden: 1.0}, note=hidden)
    spec = restored.run.model_copy(update={
        "task": hidden, "data": restored.run.data.model_copy(update={"train": hidden, "dev": hidden}),
    })  # fmt: skip
    state = dataclasses.replace(restored.state, last=last)
    hostile = dataclasses.replace(restored, run=spec, state=state, precision=hidden, streams=[hidden])
    text = write_model_card(hostile, run, "last", 0, [StageFile(Path(f"{hidden}.py"), hidden, hidden)])
    assert make_visible(text) == text
    assert text.count("\\u202e") >= 10


def test_the_card_of_a_studys_run_says_what_the_study_says(tmp_path: Path) -> None:
    moment = Moment(tmp_path)
    moment.plan()
    own = moment.run("bypass", 1)
    folder = tmp_path / "runs" / own.id
    trained(small(segments=SHORT), folder)
    said = []
    for seed in (1, 2):
        for arm, accuracy in (("dot", 0.5), ("bypass", 0.75), ("slow", 0.25)):
            moment.end(arm, seed, accuracy + seed / 100)
        assert (
            main(["export", str(tmp_path), "--arm", "bypass", "--run-seed", "1", "--out", str(tmp_path / f"{seed}")])
            == 0
        )
        said.append(card(tmp_path / f"{seed}"))
    moment.ledger.close()
    assert "Not all of its runs have ended, so there is no verdict yet" in said[0]
    assert "against `dot`, by accuracy: **" in said[1]
    assert "Arm `bypass`, phase `recall`, size `tiny`, seed 1 of the study `small` (does a bypass help" in said[1]


def test_the_card_has_the_title_of_its_arm_and_the_data_of_its_phase(tmp_path: Path) -> None:
    moment = Moment(tmp_path)
    moment.plan()
    plan = json.loads(moment.ledger.events(PLAN)[-1])
    plan["data"] = {"recall": {"train": "c" * 64}, "other": {"train": "d" * 64}}
    moment.ledger.add_event(PLAN, json.dumps(plan))
    moment.ledger.close()
    own = moment.run("bypass", 1)
    trained(small(segments=SHORT), tmp_path / "runs" / own.id)
    assert main(["export", str(tmp_path / "runs" / own.id), "--out", str(tmp_path / "out")]) == 0
    text = card(tmp_path / "out")
    assert "\n# bypass of the study small\n" in text
    assert f"the run `{own.id}` (recall, tiny, bypass, seed 1)." in text
    assert f"- **Hash of recall, train:** `{'c' * 64}`" in text
    assert "d" * 64 not in text
