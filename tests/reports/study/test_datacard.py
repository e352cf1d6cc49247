"""The data of a study on its page: sources with hashes, numbers and overlap."""

from pathlib import Path

from .made import BASE, Made
from .reading import contents


def test_a_source_has_its_hashes_and_counts(tmp_path: Path) -> None:
    made = Made(tmp_path).give("dot", BASE, ids=["a", "b"], scores={"accuracy": [1.0, 0.0]})
    ((name, facts),) = contents(made.done()).cards
    known = dict(facts)
    assert name == "recall"
    assert known["read by"] == "recall"
    assert known["train, SHA-256"] == "a" * 64
    assert known["dev, SHA-256"] == "b" * 64
    assert "1,000 training tokens per run" in known["numbers, recall"]
    assert known["numbers, recall"].endswith("2 evaluation examples")
    assert known["overlap"] == "was not counted"


def test_a_study_without_results_has_no_counts(tmp_path: Path) -> None:
    ((_, facts),) = contents(Made(tmp_path).done()).cards
    assert "numbers, recall" not in dict(facts)
