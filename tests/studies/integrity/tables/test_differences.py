"""Columns and rows of differences are neither tasks nor arms: they are named, and checked by what they are of."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import IntegrityKind, Judgement, judge, read_table
from tests.studies.integrity.result_tables import judge_file, write_rows, write_text


def list_wrong(found: Judgement) -> list[str]:
    return [it.sentence for it in found.faults if it.kind == IntegrityKind.DIFFERENCE_DIFFERS]


def find_words(found: Judgement) -> str:
    return next((words for words in found.table.layout if words.startswith("not compared, as differences")), "")


COLUMN = "method,MNLI,{}\nbase,84.1,{}\nours,84.9,{}\ngated,84.5,{}\n"
ROW = "method,MNLI,SST-2,RTE\nbase,84.1,92.0,70.1\nours,84.9,92.6,71.5\n{},{},{},{}\n"
ACROSS = "task,baseline,ours,{}\nMNLI,84.1,84.9,{}\nSST-2,92.0,92.6,{}\nRTE,70.1,71.5,{}\n"


@pytest.mark.parametrize("text", [COLUMN, ROW, ACROSS])
@pytest.mark.parametrize("name", ["Δ", "delta", "diff.", "vs. baseline", "Improvement", "gain over base", "Δ (pp)"])
@pytest.mark.parametrize("is_right", [True, False])
def test_differences_are_recognised_by_name_and_checked(tmp_path: Path, text: str, name: str, is_right: bool) -> None:
    right = ("–", "+0.8", "+0.4") if text is COLUMN else ("0.8", "0.6", "1.4")
    figures = right if is_right else (*right[:2], "3.9") if text is not COLUMN else ("0.0", "0.8", "0.9")
    found = judge_file(write_text(tmp_path, text.format(name, *figures)))
    assert repr(name) in find_words(found)
    assert name not in found.table.arms + found.table.metrics + found.table.groups
    assert f"differences={name}" in found.table.mapping
    # Of one column with a right and a wrong figure it is not known what it is of.
    assert bool(list_wrong(found)) == (not is_right and text is not COLUMN)


@pytest.mark.parametrize(
    ("header", "cells", "source"),
    [
        ("Δ acc (%)", ("", "+0.95%", "+0.48%"), "'acc' minus that of 'base' in percent"),
        ("step", ("", "+0.8", "-0.4"), "'acc' minus the one before it"),
        ("x", ("0.0", "+0.8", "+0.4"), "'acc' minus that of 'base'"),
        ("drop", ("–", "(+0.8)", "(+0.4)"), "'acc' minus that of 'base'"),
        ("Δ", ("–", "↑0.8", "↑0.4"), "'acc' minus that of 'base'"),
    ],
)
def test_what_a_column_is_the_difference_of(tmp_path: Path, header: str, cells: tuple[str, ...], source: str) -> None:
    name = header if header != "step" else "Change"
    rows = [
        f"{arm},{acc},{cell}"
        for arm, acc, cell in zip(["base", "ours", "gated"], (84.1, 84.9, 84.5), cells, strict=True)
    ]
    found = judge_file(write_text(tmp_path, "\n".join([f"method,acc,{name}", *rows])))
    assert f"{name!r}, {source}" in find_words(found)
    assert not list_wrong(found)


def test_a_wrong_difference_is_named_with_its_place(tmp_path: Path) -> None:
    text = "method,MNLI,Δ,SST-2,Δ SST-2\nbase,84.1,0.0,92.0,0.0\nours,84.9,+0.8,92.6,+0.9\ngated,84.5,+0.4,92.1,+0.1\n"
    (sentence,) = list_wrong(judge_file(write_text(tmp_path, text)))
    assert "ours: +0.9 (line 3, Δ SST-2), but the figures give +0.6" in sentence


def test_a_row_of_differences_in_latex(tmp_path: Path) -> None:
    path = tmp_path / "t.tex"
    path.write_text(
        r"\begin{tabular}{lccc} Method & MNLI & SST-2 & RTE \\ \midrule base & 84.1 & 92.0 & 70.1 \\ "
        r"ours & 84.9 & 92.6 & 71.5 \\ \midrule $\Delta$ & \textcolor{green}{+0.8} & +0.9 & +1.4 \\ \end{tabular}",
        encoding="utf-8",
    )
    found = judge_file(str(path))
    assert found.table.arms == ["base", "ours"]
    assert "SST-2: +0.9" in list_wrong(found)[0]


@pytest.mark.parametrize(
    "text",
    [
        "method,MNLI,SST-2\nbase,84.1,92.0\nours,+84.9,92.6\ngated,84.5,92.1\n",
        "method,MNLI,SST-2\nbase,84.1,92.0\nDiff,84.9,92.6\nDelta,84.5,92.1\n+ gain,84.2,92.3\n",
        "seed,base,Diff,Delta\n1,84.1,84.9,84.2\n2,84.3,84.5,84.0\n3,84.0,84.4,84.6\n",
        "method,acc,mcc\nbase,84.1,+0.31\nours,84.9,-0.02\ngated,84.4,+0.12\n",
        "method,MNLI,SST-2\nours,+0.8,+0.6\ngated,+0.4,-0.1\nrelu,-0.3,+0.2\n",
    ],
    ids=["one plus", "arms in rows", "arms in columns", "a metric with signs", "only differences"],
)
def test_what_is_no_difference(tmp_path: Path, text: str) -> None:
    found = judge_file(write_text(tmp_path, text))
    assert not find_words(found)
    assert "differences" not in found.table.mapping


def test_the_map_decides(tmp_path: Path) -> None:
    path = write_text(tmp_path, COLUMN.format("Δ", "0.0", "+0.8", "+0.4"))
    assert read_table(path, "differences=none").metrics == ["accuracy", "Δ"]
    assert read_table(path, "value=MNLI+Δ").metrics == ["accuracy", "Δ"]
    assert read_table(path, read_table(path).mapping).groups == ["MNLI"]
    with pytest.raises(RequestError, match="differences=Delta names no column or row"):
        read_table(path, "differences=Delta")
    plain = write_text(tmp_path, "method,MNLI,other\nbase,84.1,1\nours,84.9,2\n")
    assert judge(read_table(plain, "differences=other")).table.groups == ["MNLI"]


def test_a_row_of_differences_beside_unreadable_cells_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path, "Method,MNLI,SST-2", ["base,84.1,92.0", "ours,85.0*a,93.0*a", "Δ,+0.9,+1.0"])
    with pytest.raises(RequestError, match=r"line 3.*85\.0\*a"):
        read_table(path)
