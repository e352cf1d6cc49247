"""The official figures on real data, where ATTNLAB_DATA names a folder that has it (squad/, boolq/, glue/, vocabs/)."""

import gzip
import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from attnlab.data import load_tokenizer
from attnlab.errors import AttnlabWarning
from attnlab.tasks import load
from attnlab.tasks.scoring import score_labels, score_squad

DATA = Path(os.environ.get("ATTNLAB_DATA", "no folder"))

FIGURES: dict[str, dict[str, float]] = {
    "v1.1-BERT_ensemble": {"exact_match": 86.20624408703878, "f1": 92.19557978351145},
    "v1.1-Logistic_Regression": {"exact_match": 40.14191106906339, "f1": 50.98153647324461},
    "v1.1-Match_LSTM": {"exact_match": 67.63481551561021, "f1": 76.75556184979695},
    "v1.1-r_net": {"exact_match": 82.46925260170293, "f1": 88.47785965423249},
    "v2.0-BERT_single": {
        "exact": 78.74168280973637, "f1": 81.77528052374723, "total": 11873,
        "HasAns_exact": 74.10593792172739, "HasAns_f1": 80.18183293833508, "HasAns_total": 5928,
        "NoAns_exact": 83.36417157275021, "NoAns_f1": 83.36417157275021, "NoAns_total": 5945
    },
    "v2.0-BiDAF": {
        "exact": 65.70369746483618, "f1": 67.87648921451334, "total": 11873,
        "HasAns_exact": 61.42037786774629, "HasAns_f1": 65.77219238257676, "HasAns_total": 5928,
        "NoAns_exact": 69.97476871320437, "NoAns_f1": 69.97476871320437, "NoAns_total": 5945
    },
}  # fmt: skip
"""What the official scripts print for published systems."""


def real(*parts: str) -> Path:
    """Return the one file of real data whose name begins so, or skip the test."""
    folder = DATA.joinpath(*parts[:-1])
    found = sorted(folder.glob(f"{parts[-1]}*")) if folder.is_dir() else []
    if not found:
        pytest.skip(f"needs real data: set ATTNLAB_DATA to a folder with {'/'.join(parts)}")
    return found[0]


@pytest.mark.parametrize("system", FIGURES)
def test_squad_figures_are_those_of_the_official_scripts(system: str) -> None:
    predictions = real("squad", "predictions", system)
    with warnings.catch_warnings():
        # One system answers 13 questions too few, which v1.1 counts as wrong.
        warnings.simplefilter("ignore", AttnlabWarning)
        scores = score_squad(real("squad", f"dev-{system[:4]}"), predictions)
    for name, figure in FIGURES[system].items():
        assert scores.figures[name] == pytest.approx(figure, abs=1e-9)


def tokenizer_of(kind: str, folder: Path) -> Any:
    if kind == "bert":
        return load_tokenizer(real("vocabs", "bert-base-uncased-vocab"))
    for name, part in (("vocab.json", "gpt2-vocab"), ("merges.txt", "gpt2-merges")):
        (folder / name).write_bytes(gzip.decompress(real("vocabs", part).read_bytes()))
    return load_tokenizer(folder / "vocab.json")


@pytest.mark.parametrize(("kind", "num_lost"), [("bert", 2), ("gpt2", 4)])
def test_the_oracle_loses_only_what_tokens_cannot_say(kind: str, num_lost: int, tmp_path: Path) -> None:
    """What remains: 'four' inside 'fourth', and answers of more than 30 tokens."""
    task = load("squad")
    questions = task.examples(real("squad", "dev-v1.1"))
    scores = task.score(task.oracle(questions, tokenizer_of(kind, tmp_path)), questions)
    assert scores.figures["exact_match"] >= 99.9
    assert (scores.of_examples("exact") == 0).sum() == num_lost


def test_boolq_at_its_majority_rate_is_collapse(tmp_path: Path) -> None:
    data = real("boolq", "val")
    predictions = tmp_path / "yes.json"
    predictions.write_text(json.dumps(["true"] * 3270), encoding="utf-8")
    scores = score_labels(load("boolq"), data, predictions)
    assert scores.value == 2033 / 3270
    assert scores.collapse is not None
    assert scores.collapse.is_one_class


@pytest.mark.parametrize(
    ("folder", "name", "count"),
    [
        ("SST-2", "sst2", 872),
        ("CoLA", "cola", 1043),
        ("MRPC", "mrpc", 408),
        ("RTE", "rte", 277),
        ("STS-B", "stsb", 1500),
    ],
)
def test_gold_labels_score_1(folder: str, name: str, count: int) -> None:
    task = load(name)
    texts = task.examples(real("glue", folder, "dev"))
    assert len(texts) == count
    scores = task.score({one.id: one.label for one in texts}, texts)
    assert list(scores.figures.values()) == pytest.approx([1.0] * len(scores.figures), abs=1e-12)
