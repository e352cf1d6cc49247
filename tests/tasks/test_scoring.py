"""Predictions in files: every usual form is read, and what is wrong is said with file and row."""

import gzip
import json
from pathlib import Path

import pytest

from attnlab.errors import AttnlabError, AttnlabWarning, TaskError
from attnlab.tasks import load
from attnlab.tasks.scoring import Rules, score_labels, score_squad

from .squad.questions import question, write_squad

QUESTIONS = [question("Denver Broncos"), question("24–10", key="q2"), question("Köln", key="q3")]
RIGHT = {"q1": "The Denver Broncos", "q2": "24–10", "q3": "Köln"}


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    return write_squad(tmp_path / "dev.json", QUESTIONS)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "dev.tsv"
    rows = "".join(f"{i}\ta{i}\tb{i}\t{name}\n" for i, name in enumerate(["entailment", "not_entailment"] * 2))
    path.write_text(f"index\tsentence1\tsentence2\tlabel\n{rows}", encoding="utf-8")
    return path


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_squad_predictions_by_id(dev: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "p.json.gz", gzip.compress(json.dumps(RIGHT).encode()))
    assert score_squad(dev, path).figures == {"exact_match": 100.0, "f1": 100.0, "total": 3}


def test_squad_v1_says_what_is_missing_and_counts_it_wrong(dev: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "p.json", json.dumps({"q1": "Denver Broncos", "q2": "24–10", "extra": "x"}))
    with pytest.warns(AttnlabWarning, match=r"p.json has no prediction for 'q3' .*dev.json, row 3\), one of 1 missing"):
        scores = score_squad(dev, path)
    assert scores.figures["exact_match"] == pytest.approx(200 / 3)
    assert scores.missing == ["q3"]
    for rules in (Rules(is_strict=True), Rules(is_v2=True)):
        with pytest.raises(TaskError, match=r"p.json has no prediction for 'q3' .*row 3"):
            score_squad(dev, path, rules)


def test_squad_v2_is_known_by_questions_without_answer(tmp_path: Path) -> None:
    dev = write_squad(tmp_path / "dev.json", [*QUESTIONS, question(None, key="q4")])
    path = written(tmp_path, "p.json", json.dumps({**RIGHT, "q4": ""}))
    assert score_squad(dev, path).figures["NoAns_exact"] == 100.0
    chances = written(tmp_path, "na.json", json.dumps({"q1": 0.1, "q2": 0.2, "q3": 0.3, "q4": 0.4}))
    figures = score_squad(dev, path, Rules(no_answer=chances, threshold=0.25)).figures
    assert figures["HasAns_exact"] == pytest.approx(200 / 3)
    assert figures["best_exact"] == 100.0
    assert figures["best_exact_thresh"] == 0.3
    wrong = written(tmp_path, "wrong.json", '{"q1": 0.1, "q2": NaN, "q3": 0.3, "q4": 0.4}')
    with pytest.raises(TaskError, match=r"wrong.json, row 2: the score of 'q2' for having no answer is nan"):
        score_squad(dev, path, Rules(no_answer=wrong))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.tsv", "index\tprediction\n0\tentailment\n1\tentailment\n2\t0\n3\t1\n"),
        ("p.csv", "id,label\n3,1\n2,entailment\n1,0\n0,0\n"),
        ("p.jsonl", '{"idx": 0, "label": 0}\n{"idx": 1, "label": 0}\n{"idx": 2, "label": 0}\n{"idx": 3, "label": 1}\n'),
        ("p.json", '{"0": "entailment", "1": 0, "2": 0, "3": 1}'),
        ("p.json", "[0, 0, 0, 1]"),
        (
            "p.json",
            '[{"id": 0, "prediction": 0}, {"id": 1, "prediction": 0}, {"id": 2, "pred": 0}, {"id": 3, "pred": 1}]',
        ),
        ("p.txt", "entailment\nentailment\n0\n1\n"),
    ],
)
def test_labels_are_read_from_every_usual_form(labels: Path, tmp_path: Path, name: str, content: str) -> None:
    scores = score_labels(load("rte"), labels, written(tmp_path, name, content))
    assert scores.value == 0.75
    assert scores.of_examples("accuracy").tolist() == [1, 0, 1, 1]


TSV = "index\tprediction\n0\tentailment\n1\tentailment\n2\tentailment\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.tsv", f"{TSV}3\tnan\n", r"p.tsv, row 4, line 5: the prediction is NaN"),
        ("p.json", '{"0": 0, "1": NaN, "2": 0, "3": 0}', r"p.json, row 2: the prediction is NaN"),
        ("p.tsv", TSV, r"p.tsv has no prediction for '3' \(.*dev.tsv, row 4.*one of 1 missing of 4"),
        ("p.tsv", f"{TSV}3\tneutral\n", r"p.tsv, row 4.*'neutral'.*must be one of entailment \(0\)"),
        ("p.tsv", f"{TSV}3\t0\n9\t0\n", r"p.tsv, row 5.*no row of the data has the id '9'"),
        ("p.tsv", f"{TSV}2\t0\n", r"p.tsv, row 4.*the id '2' stands at .*p.tsv, row 3"),
        ("p.tsv", "index\tguess\n0\t1\n", r"p.tsv, row 1.*a column 'prediction' is needed"),
        ("p.json", "[0, 1]", r"p.json has 2 predictions without ids for 4 rows"),
        ("p.json", "[[0], [1]]", r"p.json, row 1: a prediction is needed, not a list"),
        ("p.json", "3", "an object of ids and predictions is needed"),
        ("p.json", "{}", "p.json has no predictions"),
        ("p.json", '{"0": 0, "1": 0, "2"', r"p.json, line 1, column 21, in or after row 2: not JSON"),
        ("p.json", b'{"0": "\xff"}', r"p.json, line 1: byte 8 .* not UTF-8"),
        ("p.json.gz", gzip.compress(json.dumps(["x"] * 5000).encode(), mtime=0)[:-20], r"p.json.gz is cut off"),
        ("p.csv", 'id,label\n0,"1\n1,0\n', r"p.csv, row 1.*stray quote"),
        ("p.csv", 'id,label\n0,1\n1,0"x\n', r"p.csv, row .*stray quote"),
        ("none.json", None, "there is no .*none.json"),
    ],
)
def test_what_is_wrong_with_predictions_is_said_with_file_and_row(
    labels: Path, tmp_path: Path, name: str, content: str | bytes | None, message: str
) -> None:
    path = tmp_path / name if content is None else written(tmp_path, name, content)
    with pytest.raises(AttnlabError, match=message):
        score_labels(load("rte"), labels, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"q1": NaN, "q2": "", "q3": ""}', r"p.json, row 1: the prediction for 'q1' is nan; a text is needed"),
        ('{"q1": "a", "q1": "b"}', r"p.json, row 2: the id 'q1' stands at .*row 1 already"),
        ('{"other": "a"}', r"p.json: none of its 1 ids, such as 'other', is one of the data, such as 'q1'"),
        ('{"q1": "Denver', r"p.json, line 1.*not JSON"),
    ],
)
def test_what_is_wrong_with_answers_is_said_with_file_and_row(
    dev: Path, tmp_path: Path, content: str, message: str
) -> None:
    with pytest.raises(TaskError, match=message):
        score_squad(dev, written(tmp_path, "p.json", content))


def test_scores_of_having_no_answer_mean_nothing_in_v1(dev: Path, tmp_path: Path) -> None:
    path = written(tmp_path, "p.json", json.dumps(RIGHT))
    with pytest.raises(TaskError, match=r"dev.json has an answer to every question"):
        score_squad(dev, path, Rules(no_answer=path))
