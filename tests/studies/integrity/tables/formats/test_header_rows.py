"""A header of two rows is joined and said; a mean whose group is not clear is refused, and a damaged row is none."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from attnlab.studies.integrity.tables.table import ResultTable
from tests.studies.integrity.result_tables import write_text

ROWS = ["base,84.1,83.0,90.2,88.1", "ours,85.0,84.2,90.5,88.5"]
HEADERS = [
    [",MNLI,,QQP,", "method,acc,F1,acc,F1"],
    ["method,MNLI,MNLI,QQP,QQP", ",acc,F1,acc,F1"],
    ["method,MNLI,,QQP,", "method,acc,F1,acc,F1"],
]


def _read(folder: Path, lines: list[str], separator: str = ",") -> ResultTable:
    return read_table(write_text(folder, "\n".join(lines).replace(",", separator)))


def _write_markdown(lines: list[str], rule_at: int) -> list[str]:
    rows = [f"| {' | '.join(line.split(','))} |" for line in lines]
    return [*rows[:rule_at], "|" + "---|" * 5, *rows[rule_at:]]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("form", [",", ";", "\t", "Markdown", "Markdown above the rule"])
def test_groups_above_metrics(tmp_path: Path, header: list[str], form: str) -> None:
    lines = [*header, *ROWS]
    if form.startswith("Markdown"):
        table = _read(tmp_path, _write_markdown(lines, 1 if form == "Markdown" else 2))
    else:
        table = _read(tmp_path, lines, form)
    assert (table.groups, table.metrics) == (["MNLI", "QQP"], ["acc", "F1"])
    assert table.arms == ["base", "ours"]
    assert [cell.number for cell in table.values][:4] == [84.1, 83.0, 90.2, 88.1]
    assert any(word.startswith("two header rows, joined to names of columns: 'MNLI acc'") for word in table.layout)


def test_arms_and_seeds_as_groups(tmp_path: Path) -> None:
    arms = _read(tmp_path, ["task,base,,ours,", ",em,f1,em,f1", *ROWS])
    assert (arms.arms, arms.metrics, arms.groups) == (["base", "ours"], ["em", "f1"], ["base", "ours"])
    seeds = _read(tmp_path, ["method,seed 0,,seed 1,", ",em,f1,em,f1", *ROWS])
    assert seeds.metrics == ["em", "f1"]
    assert {cell.seed for cell in seeds.cells} == {"0", "1"}


def test_a_column_of_the_whole_table_is_in_no_group(tmp_path: Path) -> None:
    lines = [",,MNLI,,", "method,seed,acc,F1,params", "base,0,84.1,83.0,110", "ours,0,85.0,84.2,112"]
    table = _read(tmp_path, lines)
    assert (table.groups, table.metrics) == (["MNLI"], ["acc", "F1"])
    assert "not used: 'params'" in table.layout


@pytest.mark.parametrize(
    ("averages", "name", "over"),
    [(("86.35", "87.05"), "Avg", 4), (("89.15", "89.5"), "QQP Avg", 2)],
)  # fmt: skip
def test_the_group_of_a_mean_follows_from_its_numbers(
    tmp_path: Path, averages: tuple[str, str], name: str, over: int
) -> None:
    rows = [f"{row},{average}" for row, average in zip(ROWS, averages, strict=True)]
    table = _read(tmp_path, [",MNLI,,QQP,,", "method,acc,F1,acc,F1,Avg", *rows])
    assert [(average.name, len(average.scores)) for average in table.averages] == [(name, over)] * 2


def test_a_mean_of_an_unclear_group_is_refused(tmp_path: Path) -> None:
    rows = [f"{row},87.9" for row in ROWS]
    with pytest.raises(RequestError, match="is 'Avg' in column 6 the mean of 'QQP' or of all groups"):
        _read(tmp_path, [",MNLI,,QQP,,", "method,acc,F1,acc,F1,Avg", *rows])
    table = _read(tmp_path, [",MNLI,,QQP,,All", "method,acc,F1,acc,F1,Avg", *rows])
    assert "not compared, as means or spreads of others: 'All Avg'" in table.layout


def test_what_is_no_second_header_row(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"several columns without a name.*the second row must name the columns"):
        _read(tmp_path, ["method,MNLI,,QQP,", *ROWS])
    with pytest.raises(RequestError, match=r"line 2 of '.*': 'acc' must hold numbers, not '84.l'"):
        _read(tmp_path, ["method,acc,F1", "base,84.l,83.O", "ours,85.0,84.2", "more,85.1,84.4"])
