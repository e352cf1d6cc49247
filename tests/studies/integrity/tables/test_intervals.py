"""A mean with both ends of its 95 % interval is read as ± half of it; other intervals are refused."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import TableHints, read_table
from attnlab.studies.integrity.tables.figure import parse_figure
from tests.studies.integrity.result_tables import write_text


@pytest.mark.parametrize(
    "text",
    ["71.2 [69.8, 72.6]", "71.2 (69.8, 72.6)", "71.2 (69.8–72.6)", "71.2 (69.8-72.6)", "71.2% [69.8%; 72.6%]",
     "71.2 [69.8 to 72.6]", "71.2 (69.8 - 72.6)"],
)  # fmt: skip
def test_half_of_an_interval_is_the_spread(text: str) -> None:
    figure = parse_figure(text)
    assert figure is not None
    assert (figure.value, figure.spread, figure.spread_text, figure.is_symmetrical) == (71.2, 1.4, "1.4", True)


@pytest.mark.parametrize("text", ["71.2 [5, 3]", "71.2 (80, 90)", "71.2 (1, 2, 3)"])
def test_other_brackets_are_no_interval(text: str) -> None:
    assert parse_figure(text) is None


TABLE = "| Model | {} |\n|---|---|\n| Base | 71.2 [69.8, 72.6] |\n| Ours | 73.5 [{}, 74.8] |\n"


def test_an_interval_is_the_same_as_a_plus_minus(tmp_path: Path) -> None:
    hints = TableHints(num_seeds=5)
    read = read_table(write_text(tmp_path, TABLE.format("Accuracy (95% CI)", "72.2")), hints=hints)
    assert read_table(read.name, read.mapping, hints=hints).cells == read.cells
    plain = "| Model | Accuracy |\n|---|---|\n| Base | 71.2 ± 1.4 |\n| Ours | 73.5 ± 1.3 |\n"
    other = read_table(write_text(tmp_path, plain), hints=TableHints(num_seeds=5, spread="ci"))
    assert [cell.sd for cell in read.cells] == [cell.sd for cell in other.cells]


@pytest.mark.parametrize(
    ("name", "low", "message"),
    [
        ("Accuracy (95% CI)", "70.0", "not symmetrical about 73.5.*--spread ci"),
        ("Accuracy", "72.2", "give --spread ci; if not"),
        ("Accuracy (90% CI)", "72.2", "give --spread ci; if not"),
    ],
)
def test_what_is_no_symmetrical_95_percent_interval_is_refused(
    name: str, low: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match=message):
        read_table(write_text(tmp_path, TABLE.format(name, low)))
