"""Small JSON files: whole, old or new, and clear errors where they are neither."""

import os
from pathlib import Path
from typing import Any

import pytest

from attnlab.errors import TrainingError
from attnlab.training.record.files import read_json, write_json
from tests.training.record.mortal import run_until

OLD, NEW = {"seed": 1}, {"seed": 2, "betas": [0.9, 0.95], "line": "dot | softmax", "α": None}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run" / "config.json"
    contents: list[Any] = [OLD, NEW, [], "text", 5]
    for content in contents:
        write_json(path, content)
        assert read_json(path) == content
    assert os.listdir(path.parent) == ["config.json"]
    write_json(path, {"betas": (0.9, 0.95)})
    assert read_json(path) == {"betas": [0.9, 0.95]}


def test_killed_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    death, has_lived, found = 0, False, []
    while not has_lived:
        death += 1
        write_json(path, OLD)
        has_lived = run_until(death, write_json, path, NEW)
        found.append(read_json(path))
    assert all(content in (OLD, NEW) for content in found)
    assert found[0] == OLD
    assert found[-1] == NEW
    assert os.listdir(tmp_path) == ["config.json"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    write_json(path, OLD)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: os.close(-1))
        with pytest.raises(TrainingError, match=f"cannot write {path}: "):
            write_json(path, NEW)
    assert read_json(path) == OLD
    assert os.listdir(tmp_path) == ["config.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"lr": float("nan")}, r"config\.json\.lr is nan, which JSON does not have"),
        ({"path": Path("x")}, r"config\.json\.path is a PosixPath; JSON takes numbers, text"),
        ({"layers": {0: "x"}}, r"config\.json\.layers has the key 0, a int; JSON keys are text"),
    ],
    ids=["nan", "path", "key"],
)
def test_what_json_cannot_hold(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        write_json(tmp_path / "config.json", content)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"seed": ', r"config\.json is not JSON \(.*column 10.*\); restore it from a copy"),
        (b"\xff\xfe\xfd", r"config\.json is not JSON"),
        (b"NaN", r"config\.json is not JSON \(NaN is not JSON\)"),
        (b"", r"config\.json is not JSON"),
    ],
    ids=["torn", "bytes", "nan", "empty"],
)
def test_what_is_not_json(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "config.json").write_bytes(raw)
    with pytest.raises(TrainingError, match=message):
        read_json(tmp_path / "config.json")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"there is no .*config\.json; is .* the folder of a run\?"):
        read_json(tmp_path / "config.json")
    with pytest.raises(TrainingError, match=r"cannot read .*: there is a folder where a file is needed"):
        read_json(tmp_path)
