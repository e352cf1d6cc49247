"""CSV with comments, semicolons and decimal commas."""

from attnlab.studies.integrity.tables.formats.delimited import read_delimited


def test_comments_and_decimal_commas() -> None:
    table = read_delimited("t.csv", ["# made by hand", "arm;acc", "a;82,1", "b;83,0%"])
    assert table.header == ("arm", "acc")
    assert table.column("acc") == ["82.1", "83.0%"]
    assert [line for line, _ in table.rows] == ["line 3", "line 4"]
