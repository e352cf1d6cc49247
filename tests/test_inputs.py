"""Paths and JSON of users: every problem is one error, and everything in attnlab reads them through `inputs`."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path

import pytest

import attnlab
from attnlab.errors import RequestError
from attnlab.inputs import MAX_DEPTH, check_regular, expand_path, is_whole_number, parse_json, suggest_file

SOURCE = Path(attnlab.__file__).parent


@pytest.mark.parametrize("path", ["~nosuchuser/x", "a" * 300, "a\0b", "\ud800"])
def test_a_path_that_cannot_be_looked_up_is_refused(path: str) -> None:
    with pytest.raises(RequestError):
        expand_path(path)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("trian.txt", ", did you mean 'train.txt'?"),
        ("Train.csv", ", did you mean 'train.txt'?"),
        ("wiki.jsonl", ", did you mean 'wiki.jsonl.gz'?"),
        ("nowhere.txt", "; {folder} holds a.txt, one.txt, train.txt and 1 more"),
        ("b.txt", "; {folder} holds a.txt, one.txt, train.txt and 1 more"),
        ("test.txt", "; {folder} holds a.txt, one.txt, train.txt and 1 more"),
        ("missing/train.txt", "; there is no folder {folder}/missing either"),
    ],
)
def test_only_a_similar_file_is_suggested(tmp_path: Path, name: str, hint: str) -> None:
    for file in ("train.txt", "one.txt", "a.txt", "wiki.jsonl.gz", ".hidden"):
        (tmp_path / file).touch()
    assert suggest_file(tmp_path / name) == hint.format(folder=tmp_path)


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert suggest_file(Path("a.txt")) == "; the current folder is empty"


def test_a_folder_without_permission_and_a_loop_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RequestError, match="symbolic links"):
        expand_path(tmp_path / "loop")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(RequestError, match="Permission denied"):
        expand_path(tmp_path / "file")


def test_a_missing_file_and_a_home_folder_are_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand_path("~/new/file") == tmp_path / "new" / "file"


def test_no_home_folder_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as without HOME and without an entry of the user
    with pytest.raises(RequestError, match="home folder"):
        expand_path("~/x")


def test_pipes_sockets_and_devices_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", tmp_path / "socket", Path("/dev/zero")):
            with pytest.raises(RequestError, match="write it to a file"):
                check_regular(path)
    check_regular(tmp_path)
    check_regular(tmp_path / "missing")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000, '{"a":' * 10_000, "[" * 200 + "]" * 200, "9" * 5_000, f"[{'9' * 500}]", r'"\ud800"',
        r'{"\uDFFF": 1}', b"\xff", b'"\\ud800"', "{", "", None, 3,
    ],
)  # fmt: skip
def test_whatever_is_wrong_with_json_is_a_decode_error(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        parse_json(text)


def test_json_within_the_limits_is_read() -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    parse_json(deep)
    assert parse_json(r'"\ud83d\ude00"') == "\U0001f600"
    assert parse_json('{"a": [1, 2.5, null]}', object_pairs_hook=list) == [("a", [1, 2.5, None])]


@pytest.mark.parametrize("text", ["²", "٣", "", "-1", "1.0", "9" * 5000, " 1"])
def test_only_what_int_reads_is_a_whole_number(text: str) -> None:
    assert is_whole_number("0123456789")
    assert not is_whole_number(text)


ALLOWED = {
    "inputs.py": "the function itself",
    "checksums.py": "runs by itself when a wheel is built",
    "studies/run/node.py": "a copy of plain data",
    "studies/run/workers.py": "lines of our own processes",
    "training/loop/identity.py": "a config that transformers has just written",
    "data/tokenizers/vocabulary.py": "a tokenizer in memory",
    "studies/cost/prediction.py": "a key of our own cache in memory",
    "data/tokenizers/training.py": "a tokenizer that has been parsed by its library before",
    "data/tokens/tokenfile.py": "the index of a token file, whose errors it explains",
    "training/record/files.py": "a file of a run, whose errors it explains",
    "training/record/checkpoint.py": "a file with a SHA-256, whose errors it explains",
    "studies/integrity/study/phase_runs.py": "predictions of a run, whose errors it explains",
    **dict.fromkeys(
        (
            "studies/answers/analysis.py", "studies/answers/attention_record.py", "studies/answers/progress.py",
            "studies/answers/registration.py", "studies/run/matching_record.py",
            "studies/answers/study_folder.py", "studies/ledger/database.py", "studies/run/overlap.py",
            "studies/run/overlap_record.py", "studies/run/trials.py",
        ),
        "rows of a ledger, whose damage `explain_damage` finds",
    ),
}  # fmt: skip
"""Files that may call json.loads, and what they read."""


def test_every_json_file_is_read_with_limits() -> None:
    files = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert [name for name, text in files.items() if re.search(r"json\.loads?\(", text) and name not in ALLOWED] == []


def test_every_path_is_expanded_in_one_place() -> None:
    files = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    expanded = [name for name, text in files.items() if re.search(r"expanduser\(|Path\.home\(", text)]
    assert expanded == ["inputs.py"]
