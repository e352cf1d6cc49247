"""From a run as data to a job: what is opened, cut, sized and refused before anything trains."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from attnlab.data import cache
from attnlab.data.sources import folder
from attnlab.data.tokenizers import training
from attnlab.data.tokens import packing
from attnlab.errors import DataError, TaskError, TrainingError
from attnlab.training import Data, Segment, Tuning, build
from tests.training.runs import DATA, WORLD, small

LONG = Data(train="embedded:squad?articles=2", tokenizer="word:150")


def test_a_run_is_built_with_all_its_parts() -> None:
    job = build(small(mechanism="dot|softmax|bypass"))
    assert job.config["start"]["mechanism"] == "dot | softmax | bypass(alpha=0.5)"
    assert (len(job.streams), job.num_steps) == (1, 6)
    assert job.dev is not None
    assert len(job.dev.examples) == 7
    assert job.model.config.vocab_size == len(job.tokenizer)


def test_two_ways_to_write_a_mechanism_are_one_run() -> None:
    lines = ("dot | softmax | bypass(alpha=0.5)", "softmax|dot|bypass")
    assert build(small(mechanism=lines[0])).record == build(small(mechanism=lines[1])).record


def test_stages_have_rows_of_their_own_length() -> None:
    job = build(small(segments=(Segment(name="a", steps=1, batch=2, length=8), Segment(name="b", steps=1, batch=2))))
    assert [stream.longest for stream in job.streams] == [8, 32]
    with pytest.raises(TrainingError, match="the task 'mqar' has no length to set; leave out that of segment 'a'"):
        build(small("mqar", segments=(Segment(name="a", steps=1, length=8),)))


def test_a_file_may_be_one_document_whose_rows_begin_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "play.txt"
    file.write_text("To be,\nor not to be.\n\nThat is the question:\n" * 4, encoding="utf-8")
    data = Data(
        train=str(file), dev=str(file), tokenizer="char", unit="file", is_packed=True, has_random_starts=True
    )  # fmt: skip
    job = build(small(data=data, segments=(Segment(steps=1, batch=2, length=16),)))
    text = file.read_text(encoding="utf-8").rstrip()
    assert job.dev is not None
    assert [one.text for one in job.dev.examples] == [text]
    assert job.streams[0].arrangement.num_rows == len(text) + 1 - 15  # with the token at the end of the document
    assert "That" in job.tokenizer.decode([token for feature in job.streams[0].features for token in
                                           feature.inputs["input_ids"]])  # fmt: skip


def test_rows_are_evaluated_by_as_many_as_a_pass_holds() -> None:
    for segments, batch in (
        ((Segment(steps=1, batch=8),), 8),
        ((Segment(steps=1, batch=8, micro_batch=3),), 3),
        ((Segment(steps=1, batch=8, micro_batch=30),), 8),
    ):
        job = build(small(segments=segments))
        assert job.dev is not None
        assert job.dev.batch == batch


def test_a_tokenizer_is_trained_on_both_texts_of_a_pair(tmp_path: Path) -> None:
    rows = [{"question": "is it red", "passage": "the passage is blue", "answer": at % 2 == 0} for at in range(12)]
    file = tmp_path / "train.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    data = Data(train=str(file), tokenizer="word")
    vocabulary = build(small("sst2", data=data).replace(task="boolq")).tokenizer.get_vocab()
    assert {"red", "blue"} <= vocabulary.keys()
    one = data.replace(column="passage")
    assert "red" not in build(small("sst2", data=one).replace(task="boolq")).tokenizer.get_vocab()


def test_mnli_is_evaluated_on_its_own_half(tmp_path: Path) -> None:
    names = ("entailment", "neutral", "contradiction")
    for split, number in (("train", 12), ("dev_matched", 5), ("dev_mismatched", 7)):
        rows = [{"sentence1": f"a {at}", "sentence2": "b c", "label": names[at % 3]} for at in range(number)]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    words = tmp_path / "words.txt"
    words.write_text("a b c 1 2 3\n", encoding="utf-8")
    tokenizer = build(small(data=Data(train=str(words), tokenizer="word:20"))).tokenizer
    words.unlink()
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    for task, number in (("mnli", 5), ("mnli_mismatched", 7)):
        run = small("sst2", data=Data(train=str(tmp_path), tokenizer=str(tmp_path / "tokenizer")))
        job = build(run.replace(task=task))
        assert job.dev is not None
        assert len(job.dev.examples) == number


@pytest.mark.parametrize(
    ("changes", "task", "said"),
    [
        ({"data": Data(train="", tokenizer="word")}, {}, r"a run needs a source to train on \(data\.train\)"),
        ({"data": Data(train=WORLD)}, {}, r"a new model needs a tokenizer \(data\.tokenizer\)"),
        ({"data": Data(train=WORLD, tokenizer="word:many")}, {}, "as in 'word:4000', not 'many'"),
        ({"data": Data(train="embedded:pydco", tokenizer="word")}, {}, "did you mean 'pydoc'"),
        ({"data": Data(train="nowhere.txt", tokenizer="word")}, {}, "there is no nowhere.txt"),
        ({"task": "squad", "data": DATA["squad"].replace(is_packed=True, num_train=None)}, {}, "packed"),
        ({"task": "mqar", "data": Data(train="", is_packed=True)}, {}, "packed rows train 'mlm' or 'clm', not 'mqar'"),
        ({"data": LONG}, {"max_len": 70}, "a row to train on has 70 tokens, .* GPT2LMHeadModel has positions for 64"),
        ({}, {"max_len": 1}, r"task_settings\.max_len is a whole number of at least 2, not 1"),
        ({}, {"max_len": "long"}, "max_len of the task 'clm' is a int, such as 512, not 'long'"),
        ({}, {"max_length": 9}, "has no setting 'max_length', did you mean 'max_len'"),
        ({"task": "mlm"}, {"masking": 0.3}, "masking of the task 'mlm' is a Masking, not 0.3"),
        ({"segments": (Segment(name="a", steps=1, length=1),)}, {}, "length of segment 'a' is a whole number of"),
        ({"data": LONG, "segments": (Segment(name="a", steps=1, length=65),)}, {}, "a row to train on has 65 tokens"),
        ({"task": "squad", "tuning": Tuning(mode="prompt", length=20)}, {}, "has 48 tokens, .* positions for 44")
    ],
    ids=[
        "no source", "no tokenizer", "size", "embedded", "file", "packed squad", "packed probe", "positions",
        "one token", "text", "unknown", "masking", "stage", "long segment", "prompt"
    ],
)  # fmt: skip
def test_what_cannot_train_is_refused_before_it_does(changes: dict[str, Any], task: dict[str, Any], said: str) -> None:
    run = small(**changes)
    with pytest.raises((TrainingError, DataError, TaskError), match=said):
        build(run.replace(task_settings={**run.task_settings, **task}))


def test_how_much_of_what_is_held_out_is_evaluated_is_said(tmp_path: Path) -> None:
    for name, count in (("train", 20), ("dev", 9)):
        path = tmp_path / f"{name}.txt"
        path.write_text("\n".join(f"{name} line {at} of all" for at in range(count)) + "\n", encoding="utf-8")
    files = Data(train=str(tmp_path / "train.txt"), dev=str(tmp_path / "dev.txt"), tokenizer="word:60")
    for num_dev, said in ((None, "evaluates on 9 of the 9 examples of"), (4, "evaluates on 4 of the 9 examples of")):
        told: list[str] = []
        build(small(data=files.replace(num_dev=num_dev)), told.append)
        (line,) = [line for line in told if line.startswith("evaluates on")]
        assert line.startswith(said)
        assert line.endswith("(data.num_dev = 4)") is (num_dev is not None)


def test_lines_that_leave_nothing_to_predict_are_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "wiki.txt"
    path.write_text("\n".join(["one two three four", "5", "two three four five"] * 5) + "\n", encoding="utf-8")
    run = small(data=Data(train=str(path), dev=str(path), tokenizer="word:20"))
    told: list[str] = []
    job = build(run.replace(task_settings={"max_len": 32, "has_start": False, "has_end": False}), told.append)
    assert [line for line in told if line.startswith("skipped")] == [
        f"skipped 5 of 15 examples {purpose}: they leave nothing to predict, such as {path}, document 2"
        for purpose in ("to train on", "to evaluate on")
    ]
    assert job.dev is not None
    assert len(job.dev.examples) == 10


def test_a_corpus_is_tokenised_once_for_all_runs_and_studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "SETTLED", -1)
    text = tmp_path / "text.txt"
    text.write_text("a b c d e f g h\n" * 200, encoding="utf-8")
    counts = dict.fromkeys(("hash_content", "encode", "_train"), 0)
    for module, name in ((folder, "hash_content"), (packing, "encode"), (training, "_train")):
        monkeypatch.setattr(module, name, _count_calls(getattr(module, name), counts))
    data = Data(train=str(text), tokenizer="word:20", is_packed=True)
    runs = [small(data=data, seed=1), small(data=data, seed=2, mechanism="cosine | relu"), small("mlm", data=data)]
    files = [build(run).streams[0].loader.sequences.file for run in runs]  # type: ignore[union-attr]
    assert len({file.folder for file in files}) == 1
    assert counts == {"hash_content": 1, "encode": 1, "_train": 1}
    text.write_text("h g f e d c b a\n" * 200, encoding="utf-8")
    build(runs[0])
    assert counts == {"hash_content": 2, "encode": 2, "_train": 2}


def _count_calls(function: Any, counts: dict[str, int]) -> Any:
    @functools.wraps(function)
    def call(*args: Any) -> Any:
        counts[function.__name__] += 1
        return function(*args)

    return call
