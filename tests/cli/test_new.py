"""`attnlab new` writes a study file that can be run, and nothing where it cannot."""

from __future__ import annotations

import errno
import io
from pathlib import Path
from typing import Any

import pytest

from attnlab.cli import main
from attnlab.cli.new import write_new
from attnlab.errors import RequestError
from attnlab.studies.file.reading import read_design


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_file_compares_a_mechanism_with_the_baseline() -> None:
    assert main(["new", "cosine|relu(divide=n)"]) == 0
    for budget in (None, "smoke"):
        design = read_design("study.toml", budget)
        assert design.arms["idea"].mechanism == "cosine | relu(divide=n)"
        assert design.arms["baseline"].mechanism == "dot | softmax"


def test_a_name_of_the_catalog_and_another_baseline_are_taken() -> None:
    assert main(["new", "value-bypass", "--name", "bypass", "--baseline", "cosine | softmax", "--out", "b.toml"]) == 0
    design = read_design("b.toml")
    assert design.arms["bypass"].mechanism == "dot | softmax | bypass(alpha=0.5)"
    assert design.arms["baseline"].mechanism == "cosine | softmax"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cosin"], "cosin"),
        (["dot | softmax"], "is the baseline itself"),
        (["cosine", "--name", "two words"], "name"),
        (["cosine", "--out", "not/there/study.toml"], "cannot write"),
        (["cosine", "--plugin", "none.py"], "none.py"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", *arguments]) == 2
    assert words in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_a_file_that_is_there_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("study.toml").write_text("mine", encoding="utf-8")
    assert main(["new", "cosine"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("study.toml").read_text(encoding="utf-8") == "mine"


def test_a_full_disk_leaves_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, content: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_full(path: Path, mode: str) -> Full:
        path.touch(exist_ok=False)
        return Full()

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(RequestError, match="No space left"):
        write_new(tmp_path / "study.toml", "text")
    assert list(tmp_path.iterdir()) == []
