"""Tables for readers leave cells and names empty; these are filled."""

from attnlab.studies.integrity.tables.formats.blocks import fill_first_column, make_unique


def test_empty_first_cells_repeat_the_one_above() -> None:
    assert fill_first_column([(1, ["a", "1"]), (2, ["", "2"]), (3, ["", ""])]) == [
        (1, ["a", "1"]), (2, ["a", "2"]), (3, ["", ""]),
    ]  # fmt: skip


def test_columns_without_a_name() -> None:
    assert make_unique(["", "x", ""]) == ["", "x", "column 3"]
