"""Features come from the cache if they were made before, equal to those the task makes, never from a damaged file."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnlab.checksums import DamageError
from attnlab.tasks import Squad, feature_file, load
from attnlab.tasks.batch import Feature
from attnlab.tasks.classification import LabelledText
from attnlab.tasks.feature_file import load_features, read_features, write_features
from attnlab.tasks.language.line import make_lines

from .squad.questions import question
from .tokenizers import byte_level, wordpiece


def same(one: Feature, other: Feature) -> bool:
    """Whether two features are of one class and equal in all fields."""
    fields = [{field.name: getattr(x, field.name) for field in dataclasses.fields(x)} for x in (one, other)]
    np.testing.assert_equal(fields[0], fields[1])
    return type(one) is type(other)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(feature_file, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(feature_file, "FEWEST", 1)
    return tmp_path / "features"


def texts(num: int = 5) -> list[LabelledText]:
    return [LabelledText(str(n), f"a café {n}", "", n % 2, f"line {n}") for n in range(num)]


CASES: list[tuple[Any, list[Any]]] = [
    (Squad(max_len=32, stride=4), [question("Denver Broncos"), question("24–10")]),
    (load("sst2"), texts()),
    (load("stsb"), texts()),
    (load("clm", max_len=4), make_lines(["a café in Köln", "the Denver Broncos won the game"])),
]


@pytest.mark.parametrize(("task", "examples"), CASES, ids=["squad", "sst2", "stsb", "clm"])
def test_a_stored_feature_is_the_feature(cache: Path, task: Any, examples: list[Any]) -> None:
    made = load_features(task, examples, wordpiece())
    (file,) = cache.iterdir()
    kept = read_features(file)
    assert len(kept) == len(made)
    assert all(map(same, made, kept))


def test_the_second_run_does_not_encode(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, examples = CASES[0]
    made = load_features(task, examples, wordpiece())
    monkeypatch.setattr(Squad, "features", None)
    assert all(map(same, made, load_features(task, examples, wordpiece())))


def test_other_examples_settings_and_tokenizers_have_files_of_their_own(cache: Path) -> None:
    load_features(load("sst2"), texts(5), wordpiece())
    load_features(load("sst2"), texts(4), wordpiece())
    load_features(load("sst2", max_len=12), texts(5), wordpiece())
    load_features(load("sst2"), texts(5), byte_level())
    assert len(list(cache.iterdir())) == 4


def test_a_damaged_file_is_made_again(cache: Path) -> None:
    task, examples = CASES[1]
    made = load_features(task, examples, wordpiece())
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:100], whole[:50] + bytes([whole[50] ^ 1]) + whole[51:]):
        file.write_bytes(damaged)
        with pytest.raises(DamageError):
            read_features(file)
        assert all(map(same, made, load_features(task, examples, wordpiece())))
        assert file.read_bytes() == whole


def test_few_examples_and_other_peoples_tasks_are_not_stored(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine:
        def features(self, examples: list[Any], tokenizer: Any) -> list[Feature]:
            return []

    assert load_features(Mine(), texts(), wordpiece()) == []
    assert len(load_features(load("mlm"), make_lines(["a café in Köln"]), wordpiece())) == 1
    monkeypatch.setattr(feature_file, "FEWEST", 100)
    load_features(load("sst2"), texts(), wordpiece())
    assert not cache.exists()


def test_features_that_differ_in_their_targets_are_left_unwritten(tmp_path: Path) -> None:
    one, other = load("sst2").features(texts(2), wordpiece())
    write_features([one, Feature(other.key, 1, other.inputs, {}, other.padding)], tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_disk_that_cannot_be_written_costs_only_time(cache: Path) -> None:
    cache.write_text("not a folder")
    assert len(load_features(load("sst2"), texts(), wordpiece())) == 5
