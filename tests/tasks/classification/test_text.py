"""Texts and labels are read from files of GLUE's shapes; wrong files are refused with the row."""

import json
from pathlib import Path

import pytest

from attnlab.errors import DataError, TaskError
from attnlab.tasks import Columns, load


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_cola_has_no_header_but_its_test_set_has(tmp_path: Path) -> None:
    task = load("cola")
    dev = write(tmp_path, "dev.tsv", 'gj04\t1\t\tThe "sailors" rode.\ngj04\t0\t*\tRode sailors the.\n')
    texts = task.examples(dev)
    assert [(one.text, one.label) for one in texts] == [('The "sailors" rode.', 1), ("Rode sailors the.", 0)]
    test = write(tmp_path, "test.tsv", "index\tsentence\n0\tBill whistled.\n")
    assert task.examples(test)[0].label is None
    assert [one.text for one in task.examples(tmp_path, "test")] == ["Bill whistled."]


def test_columns_have_the_names_of_files_or_of_the_hub(tmp_path: Path) -> None:
    own = write(tmp_path, "own.tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone\ttwo\n")
    hub = write(tmp_path, "hub.jsonl", '{"sentence1": "one", "sentence2": "two", "label": 1, "idx": 5}\n')
    for path, key in ((own, "0"), (hub, "5")):
        (one,) = load("mrpc").examples(path)
        assert (one.id, one.text, one.pair, one.label) == (key, "one", "two", 1)


def test_mnli_takes_the_development_set_it_is_named_after(tmp_path: Path) -> None:
    head = "index\tsentence1\tsentence2\tgold_label\n"
    write(tmp_path, "dev_matched.tsv", f"{head}0\ta\tb\tneutral\n")
    write(tmp_path, "dev_mismatched.tsv", f"{head}0\tc\td\tcontradiction\n")
    assert load("mnli").examples(tmp_path, "dev")[0].text == "a"
    assert load("mnli-mm").examples(tmp_path, "dev")[0].text == "c"


def test_rows_that_are_left_out_by_agreement(tmp_path: Path) -> None:
    path = write(tmp_path, "snli.csv", "gold_label,sentence1,sentence2\n-,a,b\nneutral,c,d\n")
    columns = Columns(("sentence1",), ("gold_label",), ("sentence2",), skipped=("-",))
    task = load("text", columns=columns).with_labels_of(path)
    assert task.labels.names == ("neutral",)
    assert [one.text for one in task.examples(path)] == ["c"]


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        ("rte", "index\tsentence1\tsentence2\tlabel\n0\ta\tb\tneutral\n", r"row 1.*'neutral'.*entailment \(0\)"),
        ("rte", "index\tsentence1\tlabel\n0\ta\tentailment\n", r"row 1.*a column 'sentence2' is needed"),
        ("sst2", "sentence\tlabel\nfine\t1\n \t0\n", "row 2.*column 'sentence' is ' ' where a text is needed"),
        ("stsb", "sentence1\tsentence2\tscore\na\tb\t7.5\n", "row 1.*7.5 is not from 0 to 5"),
        ("wnli", "index\tsentence1\tsentence2\tlabel\n3\ta\tb\t1\n3\tc\td\t0\n", "row 2.*the id '3' stands at .*row 1"),
        ("qqp", "id\tquestion1\tquestion2\tis_duplicate\n0\t \t\t1\n", "row 1.*where a text is needed"),
        ("cola", "label\tsentences\n1\tFine.\n", "fields, but 4 are needed"),
    ],
)
def test_the_file_of_another_task_is_refused(tmp_path: Path, task: str, content: str, message: str) -> None:
    path = write(tmp_path, "dev.tsv", content)
    with pytest.raises((TaskError, DataError), match=message) as refused:
        load(task).examples(path)
    assert str(path) in str(refused.value)


def test_half_a_pair_may_be_empty(tmp_path: Path) -> None:
    path = write(tmp_path, "dev.tsv", "id\tquestion1\tquestion2\tis_duplicate\n0\tWhy?\t\t0\n")
    assert load("qqp").examples(path)[0].pair == ""


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises((TaskError, DataError), match=r"dev.tsv"):
        load("sst2").examples(write(tmp_path, "dev.tsv", "sentence\tlabel\n"))


def test_questions_about_one_passage_are_a_cluster(tmp_path: Path) -> None:
    rows = [
        {"question": "is it old", "passage": "Mill -- It is old.", "answer": True},
        {"question": "does it turn", "passage": "Mill -- The wheel turns.", "answer": True},
        {"question": "did she write", "passage": "She wrote.", "answer": True},
        {"question": "was she here", "passage": "Nobody knows.", "title": "Ada", "answer": False},
    ]
    path = tmp_path / "boolq.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task = load("boolq")
    texts = task.examples(path)
    assert [one.cluster for one in texts] == ["Mill", "Mill", "She wrote.", "Ada"]
    scores = task.score({one.id: 1 for one in texts}, texts)
    assert scores.clusters == ["Mill", "Mill", "She wrote.", "Ada"]
    assert task.score({one.id: 1 for one in texts[1:]}, texts[1:]).clusters is None
