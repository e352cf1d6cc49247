"""Held-out examples that are also trained on are counted once for each source and task, before training."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from attnlab.reports.study.datacard import make_data_cards
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.ledger.database import Ledger
from attnlab.studies.plan.planning import hash_data, locate_sources
from attnlab.studies.run.overlap import count_overlaps
from attnlab.studies.run.overlap_record import SourceOverlap, read_overlaps
from attnlab.studies.study import Study
from attnlab.training.loop.stopping import StopRequest

from ..samples import content

LINES = [f"the {word} stands on the old table here" for word in ("cup", "pen", "book", "map", "hat")]
Count = Callable[..., list[SourceOverlap]]


def text_study(folder: Path, held_out: list[str], **source: Any) -> Study:
    """Return a study of text that trains on LINES."""
    for name, lines in (("train", LINES), ("dev", held_out)):
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    plain = content(phases__recall__task="clm", sizes__tiny__tokenizer="word:50")
    plain["phases"][0] |= {"task_settings": {"max_len": 8}, "data": "text"}
    plain["data"] = {"text": {"train": str(folder / "train.txt"), "dev": str(folder / "dev.txt"), **source}}
    return Study.of(plain)


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def count(tmp_path: Path, messages: list[str]) -> Iterator[Count]:
    """Count the overlaps of a study, and return those in its ledger."""
    ledger, stop = Ledger(tmp_path / "ledger.sqlite"), StopRequest()

    def run(study: Study, signal: int | None = None) -> list[SourceOverlap]:
        stop.signal = signal
        hashes = hash_data(study.design)
        count_overlaps(ledger, study.design, locate_sources(study.design, {}), hashes, messages.append, stop)
        return read_overlaps(ledger, hashes)

    yield run
    ledger.close()


def test_case_and_white_space_do_not_hide_an_overlap(count: Count, messages: list[str], tmp_path: Path) -> None:
    held_out = [LINES[0].upper(), LINES[1].replace(" ", "  "), "a line that nobody trains on at all"]
    study = text_study(tmp_path, held_out)
    (overlap,) = count(study)
    assert (overlap.unit, overlap.num_held_out, overlap.num_found) == ("document", 3, 2)
    assert len(messages) == 1
    assert messages[0].startswith("text: 2 of 3 documents that 'text' holds out are also")
    assert count(study) == [overlap]
    assert messages == [messages[0]] * 2, "each start says so, and the examples are counted once"


def test_a_source_with_tuning_data_keeps_its_overlap(count: Count, tmp_path: Path) -> None:
    (tmp_path / "tune.txt").write_text("a line that is there to tune on\n", encoding="utf-8")
    (overlap,) = count(text_study(tmp_path, LINES[:1], tune=str(tmp_path / "tune.txt")))
    assert overlap.num_found == 1


def test_the_count_of_settings_that_apply_again_is_in_force_again(count: Count, tmp_path: Path) -> None:
    for num_dev in (2, 1, 2):
        (overlap,) = count(text_study(tmp_path, LINES[:3], num_dev=num_dev))
        assert overlap.num_found == num_dev


@pytest.mark.usefixtures("here")
def test_the_finding_survives_every_kill_of_a_study_with_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tune.txt").write_text("a line that is there to tune on\n", encoding="utf-8")
    plain = text_study(tmp_path, LINES[:1], tune=str(tmp_path / "tune.txt")).design.model_dump(mode="json")
    plain |= {"arms": {"dot": "dot | softmax", "cosine": "cosine | softmax"}, "seeds": [1]}
    study = Study.of({**plain, "search": {"over": {"optimizer.lr": [1e-3, 1e-2]}}})
    monkeypatch.setattr(Study, "_audit_arms", lambda *_: {})
    sentence = "1 of 1 documents that 'text' holds out are also among those it trains on"

    def start() -> bool:
        """Start the study; tell whether the overlap is reported."""
        said: list[str] = []
        with suppress(KeyboardInterrupt):
            study.run(tmp_path / "study", say=said.append)
        return any(sentence in line for line in said)

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("attnlab.studies.study.count_overlaps", kill)
        assert not start()
    with monkeypatch.context() as patch:
        patch.setattr("attnlab.studies.study.Execution.run", kill)
        assert start()
        assert start()
    assert start(), "with runs to train"
    assert start(), "with runs that have all ended"
    shutil.copytree(tmp_path / "study", tmp_path / "copy")
    for folder in ("study", "copy"):
        with open_record(tmp_path / folder) as record:
            assert record.is_whole
            faults = [finding.sentence for finding in record.findings if finding.is_fault]
            assert any(sentence in fault for fault in faults)
            assert any(sentence in fact for _, facts in make_data_cards(record) for _, fact in facts)


def test_only_the_examples_that_are_used_count(count: Count, messages: list[str], tmp_path: Path) -> None:
    (overlap,) = count(text_study(tmp_path, LINES[:3], num_train=1, num_dev=2))
    assert (overlap.num_held_out, overlap.num_found) == (2, 1)


def test_probes_are_compared_by_tokens_and_labels(count: Count, messages: list[str]) -> None:
    plain = content()
    plain["data"]["recall"]["dev"] = plain["data"]["recall"]["train"]
    (overlap,) = count(Study.of(plain))
    assert (overlap.unit, overlap.num_held_out, overlap.num_found) == ("sequence", 80, 0)


def test_a_request_to_stop_is_noticed(count: Count, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        count(text_study(tmp_path, LINES[:1]), signal=2)


def test_headings_and_lines_of_a_few_words_do_not_count(count: Count, messages: list[str], tmp_path: Path) -> None:
    study = text_study(tmp_path, ["yes", "= The cup on the old table ="])
    (tmp_path / "train.txt").write_text("yes\n= The cup on the old table =\n", encoding="utf-8")
    (overlap,) = count(study)
    assert (overlap.num_held_out, overlap.num_found, overlap.num_short, overlap.share) == (0, 0, 2, 0.0)
    assert messages == []
