"""CSV files are read as rows, or rejected with one clear error."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from tests.studies.integrity.result_tables import write_text


def test_percent_signs_and_tabs(tmp_path: Path) -> None:
    read = read_table(write_text(tmp_path, "arm\tseed\taccuracy\na\t1\t50.5%\nb\t1\t60%\n"))
    assert [cell.value for cell in read.cells] == [50.5, 60.0]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"cannot read .*nowhere\.csv"):
        read_table(str(tmp_path / "nowhere.csv"))
    with pytest.raises(RequestError, match="cannot read"):
        read_table(str(tmp_path))
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00\x01" * 20)
    with pytest.raises(RequestError, match="not UTF-8 text"):
        read_table(str(binary))
    with pytest.raises(RequestError, match="no arm is named 'c'"):
        read_table(write_text(tmp_path, "arm,seed,acc\na,1,0.5\nb,1,0.6\n"), None, "c")


@pytest.mark.parametrize(
    ("names", "arms"),
    [(("Base†", "Ours*", "Other"), ["Base", "Ours", "Other"]), (("Base", "Ours", "Ours*"), ["Base", "Ours", "Ours*"])],
)
def test_marks_of_footnotes_are_no_part_of_a_name(tmp_path: Path, names: tuple[str, ...], arms: list[str]) -> None:
    path = tmp_path / "table.md"
    path.write_text(
        "| Method | acc |\n|---|---|\n" + "".join(f"| {name} | 82.1 |\n" for name in names), encoding="utf-8"
    )
    assert read_table(str(path)).arms == arms


def test_what_a_pdf_must_become(tmp_path: Path) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(b"%PDF-1.7 \xff\xfe")
    with pytest.raises(RequestError, match="copy or export the table as one of these"):
        read_table(str(path))
