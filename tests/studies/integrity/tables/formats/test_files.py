"""Files are recognised by their content; a file with several tables asks which one."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity.tables.formats.files import read_file, read_files

TWO = "| a | acc |\n|--|--|\n| x | 1 |\n\n| b | acc |\n|--|--|\n| y | 2 |\n"


def test_one_of_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(TWO, encoding="utf-8")
    with pytest.raises(RequestError, match=r"has 2 tables: 1 \(line 1\), 2 \(line 5\); choose one with --map table=1"):
        read_file(str(path))
    assert read_file(str(path), 2).header == ("b", "acc")
    with pytest.raises(RequestError, match=r"table=3: .* has 2 tables"):
        read_file(str(path), 3)


def test_several_files_are_one_table(tmp_path: Path) -> None:
    for name in ("base", "new"):
        (tmp_path / f"{name}.csv").write_text("seed,acc\n1,0.5\n2,0.6\n", encoding="utf-8")
    table = read_files([str(tmp_path / "base.csv"), str(tmp_path / "new.csv")])
    assert table.name == "base, new"
    assert table.column("arm") == ["base", "base", "new", "new"]
    assert table.remarks == ("arm from the names of the files",)
