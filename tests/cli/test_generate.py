"""`attnlab generate` continues a text with what was trained, and says clearly why it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import attnlab
from attnlab.cli import main
from attnlab.data.tokenizers.builders import build_words
from attnlab.studies.run.execution import make_row
from attnlab.tasks import sample
from attnlab.tasks.language.sentences import decode
from attnlab.training import Optimizer, Segment, Tuning
from attnlab.training.job.restore import restore
from tests.studies.moments import Moment
from tests.training.runs import small, trained

LINE = "dot | softmax | bypass(alpha=0.5, schedule=warmup)"


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a language model whose best checkpoint is not its last."""
    folder = tmp_path_factory.mktemp("clm")
    segments = (Segment(steps=6, batch=4),)
    _, result = trained(small(segments=segments, evaluate_every=1, mechanism=LINE, optimizer=Optimizer(lr=0.5)), folder)
    assert result.best.step != result.last.step
    return folder


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train a model that reads both ways."""
    folder = tmp_path_factory.mktemp("mlm")
    trained(small("mlm", segments=(Segment(steps=1, batch=4),)), folder)
    return folder


def test_it_writes_what_the_model_samples(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--tokens", "5", "--samples", "2", "--seed", "3", "--temperature", "0.5", "--top-k", "9"]
    assert main(["generate", str(run), "--prompt", "Ada", "--prompt", "the", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    own = restore(run)
    assert [(one["prompt"], one["seed"]) for one in found] == [("Ada", 3), ("Ada", 4), ("the", 3), ("the", 4)]
    for one in found:
        text = sample(
            own.model, own.tokenizer, one["prompt"], num_tokens=5, temperature=0.5, top_k=9, seed=one["seed"]
        )  # fmt: skip
        assert one["text"] == text


def test_without_json_there_are_the_texts_alone(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", str(run), "--tokens", "3", "--temperature", "0"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1
    assert shown.err == ""


def test_a_prompt_that_the_model_does_not_continue_is_said(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = restore(run).tokenizer
    ids = tokenizer("Ada", add_special_tokens=False)["input_ids"]
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    for added, why in (
        ([end], "the model ends the text there"),
        ([pad, pad], f"the 2 new tokens, such as {tokenizer.pad_token}"),
    ):
        monkeypatch.setattr(
            "attnlab.tasks.language.sentences.sample_tokens", lambda *_, new=added, **__: ([*ids, *new], len(ids))
        )
        assert main(["generate", str(run), "--prompt", "Ada"]) == 0
        assert f"seed 0: nothing was added to the prompt: {why}" in capsys.readouterr().err


def test_unknown_words_are_shown_and_other_special_tokens_are_not() -> None:
    tokenizer = build_words(
        {word: place for place, word in enumerate(("<START>", "<STOP>", "<UNK>", "<PAD>", "the", "word"))}
    )
    unknown, end = tokenizer.unk_token_id, tokenizer.eos_token_id
    known = tokenizer("the word", add_special_tokens=False)["input_ids"]
    assert decode(tokenizer, [tokenizer.bos_token_id, *known, unknown, unknown, end]) == "the word <UNK> <UNK>"


def test_the_best_checkpoint_is_another_model(run: Path) -> None:
    last, best = restore(run), restore(run, is_best=True)
    assert (last.state.step, best.state.best) == (6, last.state.best)
    assert best.state.step == last.state.best.step if last.state.best else False
    weights = [found.model.state_dict()["transformer.wte.weight"] for found in (last, best)]
    assert not weights[0].equal(weights[1])


def test_a_saved_model_says_the_same(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = restore(run)
    attnlab.save(found.model, tmp_path / "saved")
    found.tokenizer.save_pretrained(tmp_path / "saved")
    texts = []
    for folder in (run, tmp_path / "saved"):
        assert main(["generate", str(folder), "--prompt", "Ada", "--tokens", "6"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert main(["generate", str(tmp_path / "saved"), "--checkpoint", "best"]) == 2
    assert "is a saved model and has no checkpoints" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["prompt", "prefix", "lora"])
def test_what_was_added_to_a_frozen_model_speaks_too(mode: str, tmp_path: Path) -> None:
    tuning = Tuning(mode=mode, length=4, rank=2)
    job, _ = trained(small(segments=(Segment(steps=2, batch=4),), tuning=tuning), tmp_path)
    found = restore(tmp_path)
    job.model.eval()  # type: ignore[no-untyped-call]
    ids = {"input_ids": job.streams[0].make(job.streams[0].arrangement.rows(0, 0), 0)["input_ids"]}
    assert found.model(**ids).logits.equal(job.model(**ids).logits)
    assert main(["generate", str(tmp_path), "--tokens", "3"]) == 0


def test_wrong_requests_are_one_message(
    run: Path, masked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    long = " ".join(["Ada"] * 60)
    for arguments, said in (
        ([str(masked)], "holds a BertForMaskedLM, which does not predict the next token"),
        ([str(run), "--prompt", long], "a prompt of 61 tokens and --tokens 40 need 100 positions; this GPT2LMHead"),
        ([str(run), "--checkpoint", "newest"], "--checkpoint takes last or best, not 'newest'"),
        ([str(run), "--temperature", "-1"], "--temperature must be 0 or more, not -1"),
        ([str(run), "--temperature", "nan"], "--temperature must be 0 or more, not nan"),
        ([str(run), "--top-k", "0"], "--top-k takes a number of at least 1, not '0'"),
        ([str(run), "--tokens", "0"], "--tokens"),
        ([str(run), "--arm", "dot"], "choose a run of a study"),
        ([str(tmp_path / "nothing")], "is not a folder"),
        ([str(tmp_path / "empty")], "has no config.json"),
    ):
        assert main(["generate", *arguments]) == 2
        shown = capsys.readouterr()
        assert said in shown.err
        assert shown.out == ""


def test_a_study_lists_its_runs_or_takes_the_one_that_is_named(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moment = Moment(tmp_path)
    moment.plan()
    moment.ledger.add_runs([make_row(one) for one in moment.planned])
    moment.ledger.close()
    assert main(["generate", str(tmp_path)]) == 2
    assert "none of its runs has begun" in capsys.readouterr().err
    (tmp_path / "runs").mkdir()
    for arm in ("dot", "bypass"):
        (tmp_path / "runs" / moment.run(arm, 1).id).symlink_to(run)
    assert main(["generate", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "holds a study; give the folder of one run, or --arm, --run-seed, --phase, --size" in said
    assert f"runs/{moment.run('dot', 1).id}  recall, tiny, dot, seed 1\n" in said
    assert main(["generate", str(tmp_path), "--run-seed", "1"]) == 2
    assert "several of its runs match" in capsys.readouterr().err
    assert main(["generate", str(tmp_path), "--arm", "none"]) == 2
    assert "none of its runs matches" in capsys.readouterr().err
    assert main(["generate", str(tmp_path), "--arm", "dot", "--run-seed", "1", "--tokens", "2"]) == 0


def test_a_probe_has_no_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained(small("mqar", segments=(Segment(steps=1, batch=4),)), tmp_path)
    assert main(["generate", str(tmp_path)]) == 2
    assert "was trained on 'mqar', whose tokens are not text" in capsys.readouterr().err
