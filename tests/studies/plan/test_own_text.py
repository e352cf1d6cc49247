"""`--data` with one's own text: packed, evaluated whole or on a part that is held out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from attnlab.studies.file.design import Design
from attnlab.studies.plan.own_text import drop_num_dev, find_held_out
from attnlab.studies.plan.planning import locate_sources, replace_paths
from tests.studies.samples import study


@pytest.fixture(autouse=True)
def _texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    for name in ("mine.txt", "other.txt"):
        Path(name).write_text("".join(f"line {number} of {name}\n" for number in range(40)), encoding="utf-8")


def design(**data: Any) -> Design:
    base = study().design
    source = next(iter(base.data.values()))
    phase = base.phases[0].model_copy(update={"task": "clm", "task_settings": {}, "data": "text", "after": None})
    text = source.model_validate({"train": "embedded:pydoc?paragraphs=1", "num_dev": 5, **data})
    return base.model_copy(update={"data": {"text": text}, "phases": (phase,)})


def test_a_file_alone_is_packed_and_a_part_held_out() -> None:
    given = {"text.train": "mine.txt"}
    study = drop_num_dev(design(dev="embedded:pydoc?paragraphs=1"), given, ())
    found = locate_sources(study, given)["text"]
    assert (Path(found.train).name, Path(str(found.dev)).name) == ("mine.train.txt", "mine.dev.txt")
    assert found.is_packed
    assert found.num_dev is None
    assert find_held_out(study, replace_paths(study, given))["text"].num_dev == 4


def test_a_file_to_evaluate_on_is_read_whole_unless_num_dev_is_set() -> None:
    given = {"text.train": "mine.txt", "text.dev": "other.txt"}
    found = locate_sources(drop_num_dev(design(), given, ()), given)["text"]
    assert (found.train, found.dev, found.num_dev) == ("mine.txt", "other.txt", None)
    kept = locate_sources(drop_num_dev(design(), given, ("data.text.num_dev",)), given)["text"]
    assert kept.num_dev == 5


def test_the_study_s_own_data_stays_as_it_is() -> None:
    assert locate_sources(drop_num_dev(design(), (), ()), {})["text"] == design().data["text"]
    mine = design(train="mine.txt", dev="other.txt")
    assert locate_sources(mine, {})["text"] == mine.data["text"]
    only = locate_sources(design(is_packed=False), {"text.train": "mine.txt"})["text"]
    assert not only.is_packed
