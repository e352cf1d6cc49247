"""An average of other columns is recognised by its name, or by its name and its numbers; an unclear one is refused."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from attnlab.studies.integrity.tables.average_columns import list_columns_of_average
from tests.studies.integrity.result_tables import write_text

ROWS = "base,84.1,90.2,92.1,88.8\nours,85.0,90.5,92.9,89.5\n"
NAMES = ["GLUE Avg", "Avg.", "Average score", "avg over tasks", "Mean (GLUE)", "Avg ↑", "Avg (8 tasks)", "My-Bench avg"]


@pytest.mark.parametrize("name", NAMES)
def test_averages_are_no_metrics_and_are_named(tmp_path: Path, name: str) -> None:
    table = read_table(write_text(tmp_path, f"method,MNLI,QQP,SST-2,{name}\n{ROWS}"))
    assert table.groups == ["MNLI", "QQP", "SST-2"]
    assert f"not compared, as means or spreads of others: '{name}'" in table.layout
    assert [average.text for average in table.averages] == ["88.8", "89.5"]


@pytest.mark.parametrize("name", ["GLUE Avg", "Average score", "Mean (GLUE)"])
def test_a_row_of_averages_is_no_group(tmp_path: Path, name: str) -> None:
    table = read_table(write_text(tmp_path, f"task,base,ours\nMNLI,84.1,85.0\nQQP,90.2,90.5\n{name},87.15,87.75\n"))
    assert table.groups == ["MNLI", "QQP"]
    assert len(table.averages) == 2


def test_a_mean_that_is_no_average_of_the_others_stays_a_score(tmp_path: Path) -> None:
    for name in ("mean_f1", "mean episode length"):
        table = read_table(write_text(tmp_path, f"method,acc,em,{name}\nbase,84.1,90.2,12.1\nours,85.0,90.5,13.9\n"))
        assert len(table.metrics) == 3 or "not used: " in "; ".join(table.layout)
        assert not table.averages
    settings = read_table(write_text(tmp_path, "method,blocks,width,Average score\nbase,4,128,70.1\nours,4,64,71.9\n"))
    assert settings.metrics == ["score"]
    means = read_table(write_text(tmp_path, "method,MNLI mean,QQP mean,SST mean\nbase,84.1,90.2,92\nours,85,90,93\n"))
    assert (means.groups, means.metrics) == (["MNLI", "QQP", ""], ["accuracy", "accuracy or F1", "SST"])


def test_an_unclear_average_is_refused_and_the_map_settles_it(tmp_path: Path) -> None:
    path = write_text(tmp_path, f"method,MNLI,QQP,SST-2,QA avg\n{ROWS.replace('88.8', '86.0')}".replace("89.5", "87.0"))
    with pytest.raises(RequestError, match=r"is 'QA avg' of '.*' an average of 'MNLI', .* value=MNLI\+QQP\+SST-2"):
        read_table(path)
    assert read_table(path, "value=MNLI+QQP+SST-2").groups == ["MNLI", "QQP", "SST-2"]
    assert read_table(path, "value=MNLI+QQP+SST-2+QA avg").groups == ["MNLI", "QQP", "SST-2", ""]


def test_an_average_is_over_the_columns_that_it_names() -> None:
    names = ["SQuAD EM", "SQuAD F1", "SQuAD Avg", "MNLI acc", "Avg"]
    assert list_columns_of_average("SQuAD Avg", names) == ["SQuAD EM", "SQuAD F1"]
    assert list_columns_of_average("Avg", names) == ["SQuAD EM", "SQuAD F1", "MNLI acc"]
    assert list_columns_of_average("MNLI avg", names) == []
