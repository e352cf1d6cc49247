"""Numbers come from files and from the command line itself, and a slip is shown with its place."""

from pathlib import Path

import pytest

from attnlab.cli.numbers import read_file, read_indices, read_vector
from attnlab.errors import RequestError


@pytest.mark.parametrize(
    ("name", "text", "numbers"),
    [
        ("a.json", "[[1, 2.5], [-3, 4]]", [[1, 2.5], [-3, 4]]),
        ("a.csv", "1,2.5\n\n-3, 4\n", [[1, 2.5], [-3, 4]]),
        ("A.CSV", "\ufeff1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
    ],
)
def test_a_file_holds_rows(name: str, text: str, numbers: list[list[float]], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_file("--keys", str(tmp_path / name)) == numbers


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", b"[[1, 2", "is not JSON"),
        ("a.json", b'{"keys": []}', "must hold lists of numbers"),
        ("a.csv", b"x,y\n1,2\n", "line 1 of .* must hold only numbers"),
        ("a.csv", b"\xff\xfe", "not UTF-8"),
        ("a.npy", b"", "ends in .json or .csv"),
    ],
)
def test_what_holds_no_numbers_is_refused(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RequestError, match=said):
        read_file("--keys", str(tmp_path / name))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"--keys cannot read '.*none\.json'"):
        read_file("--keys", str(tmp_path / "none.json"))


def test_a_vector_stands_on_the_line_or_in_a_file(tmp_path: Path) -> None:
    assert read_vector("--query", "1, -0.5,2e3") == [1, -0.5, 2000]
    for text in ("[1, 2, 3]", "[[1, 2, 3]]", "[[1], [2], [3]]"):
        (tmp_path / "q.json").write_text(text, encoding="utf-8")
        assert read_vector("--query", str(tmp_path / "q.json")) == [1, 2, 3]


def test_indices_are_whole_numbers() -> None:
    assert read_indices("--subset", "0, 2") == [0, 2]
    with pytest.raises(RequestError, match="it has '-1'"):
        read_indices("--subset", "0,-1")
