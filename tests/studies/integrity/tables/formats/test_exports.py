"""Exports of trackers: runs that did not finish count as failed, and averages of W&B are noted."""

from pathlib import Path

from attnlab.studies.integrity import read_table
from tests.studies.integrity.result_tables import write_text


def test_unfinished_runs_have_no_score(tmp_path: Path) -> None:
    text = "Name,State,User,seed,model,acc\nx,finished,me,1,a,0.5\ny,crashed,me,2,a,0.6\nz,Finished,me,1,b,0.7\n"
    table = read_table(write_text(tmp_path, text))
    assert [cell.value for cell in table.cells] == [0.5, None, 0.7]
    assert "runs that did not finish: line 3 (crashed)" in table.layout


def test_a_chart_of_averages_is_noted(tmp_path: Path) -> None:
    text = "Step,a - loss,a - loss__MIN,a - loss__MAX,b - loss,b - loss__MIN,b - loss__MAX\n1,2,1,3,2,2,2\n2,,,,1,1,1\n"
    table = read_table(write_text(tmp_path, text))
    assert table.arms == ["a", "b"]
    assert len(table.cells) == 3  # an empty cell is a step at which a run logged nothing
    assert any("W&B has averaged" in words for words in table.layout)
