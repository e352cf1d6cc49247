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
