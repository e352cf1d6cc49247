"""Exports of trackers: runs that did not finish count as failed, and averages of W&B are noted."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from tests.studies.integrity.result_tables import write_text


def test_unfinished_runs_have_no_score(tmp_path: Path) -> None:
    text = "Name,State,User,seed,model,acc\nx,finished,me,1,a,0.5\ny,crashed,me,2,a,0.6\nz,Finished,me,1,b,0.7\n"
    table = read_table(write_text(tmp_path, text))
    assert [cell.value for cell in table.cells] == [0.5, None, 0.7]
    assert "runs that did not finish: line 3 (crashed)" in table.layout


@pytest.mark.parametrize("word", ["diverged", "failed", "not ended"])
def test_the_status_of_runs_is_no_group(word: str, tmp_path: Path) -> None:
    text = f"arm,seed,status,accuracy,note\na,1,finished,0.5,x\na,2,{word},0.6,x\nb,1,finished,0.7,x\n"
    table = read_table(write_text(tmp_path, text))
    assert [cell.value for cell in table.cells] == [0.5, None, 0.7]
    assert all("status" not in group for group in (table.mapping, *table.groups))
    assert f"runs that did not finish: line 3 ({word})" in table.layout


def test_a_status_of_other_words_is_kept(tmp_path: Path) -> None:
    text = "arm,seed,status,accuracy\na,1,tuned,0.5\na,1,finished,0.6\nb,1,tuned,0.7\nb,1,finished,0.7\n"
    assert read_table(write_text(tmp_path, text)).groups == ["tuned", "finished"]


def test_a_chart_of_averages_is_noted(tmp_path: Path) -> None:
    text = "Step,a - loss,a - loss__MIN,a - loss__MAX,b - loss,b - loss__MIN,b - loss__MAX\n1,2,1,3,2,2,2\n2,,,,1,1,1\n"
    table = read_table(write_text(tmp_path, text))
    assert table.arms == ["a", "b"]
    assert len(table.cells) == 3  # an empty cell is a step at which a run logged nothing
    assert any("W&B has averaged" in words for words in table.layout)


def test_columns_that_are_left_out_or_renamed_are_explained(tmp_path: Path) -> None:
    runs = write_text(tmp_path, "Name,State,Runtime,seed,model,acc\nx,finished,31,1,a,0.5\ny,finished,32,1,b,0.7\n")
    with pytest.raises(RequestError, match=r"'Runtime' of .* is left out, since a tracker .* give it another name"):
        read_table(runs, "value=Runtime")
    text = "run_id,status,end_time,metrics.f1,params.model\n1,FINISHED,9,0.5,a\n2,FINISHED,9,0.6,b\n"
    mlflow = write_text(tmp_path, text)
    with pytest.raises(RequestError, match=r"'metrics.f1' of .* is read as 'f1'"):
        read_table(mlflow, "value=metrics.f1")
    with pytest.raises(RequestError, match=r"'end_time' of .* is left out"):
        read_table(mlflow, "value=end_time")
    chart = write_text(tmp_path, "Step,a - loss,a - loss__MIN,b - loss\n1,2,2,3\n")
    with pytest.raises(RequestError, match=r"'a - loss' of .* is read as rows with the columns"):
        read_table(chart, "value=a - loss")
