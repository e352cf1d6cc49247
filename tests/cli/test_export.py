"""`attnlab export` writes a model that loads as what was trained, with a card that says no more than is known."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import attnlab
from attnlab.cli import main
from attnlab.cli.plugin import load_plugin
from attnlab.errors import MechanismError
from attnlab.tasks.language.sentences import encode_prompt
from attnlab.training import Job, Optimizer, Segment, Tuning
from attnlab.training.job.restore import restore
from tests.studies.moments import Moment
from tests.training.runs import DATA, small, trained

LINE = "cosine(scale=learned) | softmax | bypass(alpha=0.5, schedule=warmup)"
SHORT = (Segment(steps=2, batch=4),)
OWN = """\
from dataclasses import dataclass
import torch
from attnlab import Weights, stage

@stage("cubed")
@dataclass(frozen=True)
class Cubed(Weights):
    def __call__(self, scores, n, p):
        return torch.relu(scores) ** 3
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def ids_of(job: Job) -> dict[str, Any]:
    """Return the first batch of a job."""
    batch = job.streams[0].make(job.streams[0].arrangement.rows(0, 0), 0)
    return {name: batch[name] for name in ("input_ids", "attention_mask") if name in batch}


def logits_of(job: Job) -> torch.Tensor:
    """Return what a job's model answers its first batch with."""
    job.model.eval()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        found: torch.Tensor = job.model(**ids_of(job)).logits
    return found


def card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("line", ["dot | softmax", LINE], ids=["baseline", "learned"])
def test_what_is_loaded_is_what_was_trained(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, _ = trained(small(segments=SHORT, mechanism=line), tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert f"{tmp_path / 'out'}: step 2 of the run in" in shown.out
    assert shown.err == ""
    model: Any = attnlab.load(tmp_path / "out")
    with torch.no_grad():
        assert torch.equal(model(**ids_of(job)).logits, logits_of(job))
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path / "out")
    assert tokenizer("Ada")["input_ids"] == encode_prompt(job.tokenizer, "Ada")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out", "run"]
    assert f"- **Mechanism:** `{attnlab.mechanism_of(model)}`" in card(tmp_path / "out")


@pytest.mark.parametrize("kind", ["wordpiece", "bpe:300", "word", "char"])
def test_an_exported_tokenizer_encodes_a_prompt_as_generate_does(kind: str, tmp_path: Path) -> None:
    data = DATA["clm"].model_copy(update={"tokenizer": kind})
    job, _ = trained(small(segments=SHORT, data=data), tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ("Ada wrote", "the first of them"):
        encoded = tokenizer(text, return_offsets_mapping=True)
        assert encoded["input_ids"] == encode_prompt(job.tokenizer, text)
        assert "token_type_ids" not in encoded  # GPT-2 would add them to the text
        assert tokenizer.decode(encoded["input_ids"], skip_special_tokens=True) == job.tokenizer.decode(
            encode_prompt(job.tokenizer, text), skip_special_tokens=True
        )
    masked = small("mlm", segments=SHORT)
    masked_job, _ = trained(masked, tmp_path / "mlm")
    assert main(["export", str(tmp_path / "mlm"), "--out", str(tmp_path / "mlm-out")]) == 0
    whole = transformers.AutoTokenizer.from_pretrained(tmp_path / "mlm-out")
    assert whole("Ada")["input_ids"] == masked_job.tokenizer("Ada")["input_ids"]


def test_the_best_checkpoint_is_exported_with_its_own_figures(tmp_path: Path) -> None:
    segments = (Segment(steps=6, batch=4),)
    _, result = trained(small(segments=segments, evaluate_every=1, optimizer=Optimizer(lr=0.5)), tmp_path / "run")
    assert result.best.step != result.last.step
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out"), "--checkpoint", "best"]) == 0
    assert f"After step {result.best.step}; " in card(tmp_path / "out")
    assert f"| perplexity | {result.best.value:.6g} |" in card(tmp_path / "out")
    weights = attnlab.load(tmp_path / "out").state_dict()
    best = restore(tmp_path / "run", is_best=True).model.state_dict()
    assert all(torch.equal(weights[name], best[name]) for name in best)


@pytest.mark.parametrize("mode", ["head", "prefix", "lora"])
def test_a_tuned_part_is_exported_with_its_model(mode: str, tmp_path: Path) -> None:
    task = "squad" if mode == "head" else "clm"
    tuning = Tuning(mode=mode, length=4, rank=2)
    tuned: dict[str, Any] = {"tuning": tuning, "mechanism": "dot | softmax | bypass(alpha=0.5)"}
    segments = (Segment(steps=3, batch=4),)
    job, _ = trained(small(task, segments=segments, optimizer=Optimizer(lr=0.1), **tuned), tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    model: Any = attnlab.load(tmp_path / "out")
    job.model.eval()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        found, wanted = (one(**ids_of(job)).to_tuple()[0] for one in (model, job.model))
    torch.testing.assert_close(found, wanted)
    assert ("adapters are merged" in card(tmp_path / "out")) == (mode == "lora")


def test_a_prompt_has_no_place_in_a_models_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(small(segments=SHORT, tuning=Tuning(mode="prompt", length=4)), tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 2
    assert "tuned a prompt, which is not part of the model" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(small(segments=SHORT), tmp_path / "run")
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "file" / "out")]) == 2
    assert f"cannot write {tmp_path / 'file' / 'out'}: " in capsys.readouterr().err


def test_wrong_requests_are_one_message_and_leave_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").write_text("kept", encoding="utf-8")
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "config.json").write_text("{}", encoding="utf-8")
    out = ["--out", str(tmp_path / "out")]
    for arguments, said in (
        ([str(tmp_path)], "--out DIR is missing"),
        ([str(tmp_path), *out, "--checkpoint", "newest"], "--checkpoint takes last or best, not 'newest'"),
        ([str(tmp_path), "--out", str(tmp_path / "full")], "is a folder that is not empty"),
        ([str(tmp_path), "--out", str(tmp_path / "full" / "kept")], "is a file"),
        ([str(tmp_path / "nothing"), *out], "is not a folder"),
        ([str(tmp_path / "full"), *out], "has no config.json"),
        ([str(tmp_path / "run"), *out], "does not describe a run"),
    ):
        assert main(["export", *arguments]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "full" / "kept").read_text(encoding="utf-8") == "kept"


def exported_with_own_stage(tmp_path: Path, line: str) -> Path:
    """Train and export a run with a file of stages given."""
    file = tmp_path / "cubed.py"
    file.write_text(OWN, encoding="utf-8")
    load_plugin(str(file))
    trained(small(segments=SHORT, mechanism=line), tmp_path / "run")
    out = tmp_path / "out"
    assert main(["export", str(tmp_path / "run"), "--out", str(out), "--plugin", str(file)]) == 0
    return out


def test_a_stage_of_ones_own_goes_with_the_model(
    own_stages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = exported_with_own_stage(tmp_path, "dot | cubed(divide=n)")
    assert (out / "cubed.py").read_text(encoding="utf-8") == OWN
    assert f"runpy.run_path('{out / 'cubed.py'}'); attnlab.load('{out}') reads it" in capsys.readouterr().out
    code = card(out).partition("```python\n")[2].partition("```")[0]
    assert code.startswith("import runpy\n\nimport attnlab\n")
    assert f"`cubed.py` (sha256 `{hashlib.sha256(OWN.encode()).hexdigest()}`)" in card(out)
    attnlab.mechanisms.REGISTRY.pop("cubed")
    with pytest.raises(MechanismError, match="unknown stage 'cubed'"):
        attnlab.load(out)
    names: dict[str, Any] = {"FOLDER": str(out)}
    exec(code, names)  # the card's own lines
    assert str(attnlab.mechanism_of(names["model"])) == "dot | cubed(divide=n)"


def test_a_file_of_stages_that_is_not_needed_stays_behind(
    own_stages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = exported_with_own_stage(tmp_path, "dot | softmax")
    assert not (out / "cubed.py").exists()
    assert "runpy" not in card(out) + capsys.readouterr().out


def test_a_file_of_stages_may_not_take_the_place_of_the_models(
    own_stages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "cubed.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "two" / "cubed.py").write_text("", encoding="utf-8")
    load_plugin(str(tmp_path / "one" / "cubed.py"))
    trained(small(segments=SHORT, mechanism="dot | cubed"), tmp_path / "run")
    files = [word for name in ("one", "two") for word in ("--plugin", str(tmp_path / name / "cubed.py"))]
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out"), *files]) == 2
    assert "cubed.py has the name of a file of the export; rename it" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one", "run", "two"]


def test_a_file_of_stages_that_is_not_the_studys_is_said_to_be_another(
    own_stages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moment = Moment(tmp_path)
    moment.plan()
    (tmp_path / "cubed.py").write_text(OWN, encoding="utf-8")
    load_plugin(str(tmp_path / "cubed.py"))
    trained(small(segments=SHORT, mechanism="dot | cubed"), tmp_path / "runs" / moment.run("bypass", 1).id)
    said = []
    for sha256 in (hashlib.sha256(OWN.encode()).hexdigest(), "a" * 64):
        moment.ledger.add_event(
            "started", json.dumps({"plugins": [{"file": "cubed.py", "sha256": sha256, "text": ""}]})
        )
        out = ["--out", str(tmp_path / sha256[:4]), "--plugin", str(tmp_path / "cubed.py")]
        assert main(["export", str(tmp_path), "--arm", "bypass", "--run-seed", "1", *out]) == 0
        said.append((capsys.readouterr().err, card(tmp_path / sha256[:4])))
    moment.ledger.close()
    another = "cubed.py has changed since the study was run: it may compute something else"
    assert [another in err for err, _ in said] == [another in text for _, text in said] == [False, True]
