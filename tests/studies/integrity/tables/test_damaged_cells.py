"""A cell that is no number in a column of scores is an error that names line, column and cell."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table

from ..result_tables import write_text

LONG = "arm,seed,acc\nbase,1,71\nbase,2,7O.5\nbase,3,71.2\nours,1,72\nours,2,72.5\nours,3,72.1\n"


@pytest.mark.parametrize(
    ("text", "where", "column", "cell"),
    [
        ("model,s1,s2,s3\nbase,71,7O.5,71\nours,72,92.5,73\n", "line 2", "s2", "7O.5"),
        ("model,s1,s2,s3\nbase,71,70.5,71\nours,72,2.5x,73\n", "line 3", "s2", "2.5x"),
        ("model,s1,s2,s3\nbase,71,?,71\nours,72,??,73\n", "line 2", "s2", "?"),
        (LONG, "line 3", "acc", "7O.5"),
        (LONG.replace("acc", "score"), "line 3", "score", "7O.5"),
        ("seed,base,ours\n1,71,72\n2,72,73..1\n3,70,74\n", "line 3", "ours", "73..1"),
        ("model,MNLI,RTE\nbase,84.1,66.1\nours,85.1,tbd\n", "line 3", "RTE", "tbd"),
        ("| model | MNLI | RTE |\n|--|--|--|\n| a | 84 ± .1 | 66 |\n| b | 85 ± | 67 |\n", "line 4", "MNLI", "85 ±"),
        ("model,acc_mean,acc_std\nbase,71,0.5\nours,72,O.4\n", "line 3", "acc_std", "O.4"),
        ("model,s1,s2,mean\nbase,71,72,7l.5\nours,72,73,72.5\n", "line 2", "mean", "7l.5"),
        ('[{"arm": "a", "seed": 1, "acc": 0.7}, {"arm": "b", "seed": 1, "acc": "0,8x"}]', "record 2", "acc", "0,8x"),
    ],
)  # fmt: skip
def test_a_cell_that_is_no_number_is_named(text: str, where: str, column: str, cell: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as raised:
        read_table(write_text(tmp_path, text))
    assert f"{where} of '{tmp_path / 'table.csv'}': '{column}' must hold numbers, not '{cell}'" in str(raised.value)


@pytest.mark.parametrize("word", ["", "-", "N/A", "nan", "diverged"])
def test_words_for_a_missing_score_stay(word: str, tmp_path: Path) -> None:
    table = read_table(write_text(tmp_path, LONG.replace("7O.5", word)))
    assert len(table.cells) == 6
    assert len(table.values) == 5


@pytest.mark.parametrize(
    "text",
    [
        "window,seed,acc\n128,1,71\n128,2,72\n256,1,73\n256,2,74\nfull,1,75\nfull,2,76\n",
        "window,MNLI,RTE\n128,71,61\n256,73,63\nfull,75,65\n",
        "model,seed,patience,acc\na,1,5,71\na,2,5,72\nb,1,5,71\nb,2,auto,73\n",
    ],
)
def test_other_columns_may_hold_numbers_and_words(text: str, tmp_path: Path) -> None:
    assert len(read_table(write_text(tmp_path, text)).arms) > 1


def test_columns_that_the_user_names_are_the_only_scores(tmp_path: Path) -> None:
    path = write_text(tmp_path, "model,MNLI,RTE\nbase,84.1,66.1\nours,85.1,tbd\n")
    assert read_table(path, "value=MNLI").groups == ["MNLI"]
