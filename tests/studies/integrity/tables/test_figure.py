"""A cell is a number, or a mean with its spread in any of the usual notations; anything else is refused."""

import pytest

from attnlab.studies.integrity.tables.figure import CellFigure, is_empty, parse_figure, parse_number


@pytest.mark.parametrize(
    ("text", "value", "written", "spread"),
    [
        ("82.1", 82.1, "82.1", None),
        ("82.1%", 82.1, "82.1%", None),
        ("−3", -3.0, "−3", None),
        ("82.1 ± 0.4", 82.1, "82.1", 0.4),
        ("82.1±0.4%", 82.1, "82.1", 0.4),
        ("82.1% ± 0.4%", 82.1, "82.1%", 0.4),
        ("82.1 +/- 0.4", 82.1, "82.1", 0.4),
        ("82.1 +- .4", 82.1, "82.1", 0.4),
        ("82.1 (0.4)", 82.1, "82.1", 0.4),
        ("82.1(±0.4)", 82.1, "82.1", 0.4),
        ("92.7(4)", 92.7, "92.7", 0.4),
        ("66.12(135)", 66.12, "66.12", 1.35),
        ("82.1 (+0.4)", 82.1, "82.1", None),  # a change is no spread
        ("82.1 (-0.4)", 82.1, "82.1", None),
        ("82.1 ↑0.4", 82.1, "82.1", None),
        ("82.1 ↓ 0.4%", 82.1, "82.1", None),
        ("82.1*", 82.1, "82.1", None),
        ("82.1 ± 0.4 †", 82.1, "82.1", 0.4),
        ("1e-3", 0.001, "1e-3", None),
        ("10,570", 10570.0, "10,570", None),
    ],
)
def test_figures(text: str, value: float, written: str, spread: float | None) -> None:
    assert parse_figure(text) == CellFigure(value, written, spread)


@pytest.mark.parametrize(
    "text", ["", "high", "82.1 (5)", "82(5)", "82.1 ± -0.4", "82.1 [83, 85]", "1 2", "82,1", "± 0.4", "nan"]
)
def test_other_texts_are_no_figure(text: str) -> None:
    assert parse_figure(text) is None


def test_empty_cells_and_numbers() -> None:
    assert all(map(is_empty, ["", "–", "NaN", "OOM", "diverged", "*"]))
    assert not is_empty("0")
    assert parse_number("82.1 ± 0.4") is None


@pytest.mark.parametrize("cell", ["1" * 200_000 + "x", "1" + " " * 200_000 + "x", "1 ± 2" + " " * 200_000 + "x"])
def test_a_very_long_cell_is_read_in_linear_time(cell: str) -> None:
    assert parse_figure(cell) is None


@pytest.mark.parametrize(
    "text", ["85.0$_{+0.9}$", "85.0_{+0.9}", "85.0 (↑0.9)", "85.0 ↑0.9", "85.0*", "85.0†", "85.0^a", "85.0$^{†}$"]
)
def test_a_change_or_a_footnote_is_no_part_of_the_value(text: str) -> None:
    assert parse_figure(text) == CellFigure(85.0, "85.0")
