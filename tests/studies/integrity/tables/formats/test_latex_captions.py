"""Each LaTeX table of a file with several has the caption of its own float."""

from pathlib import Path

import pytest

from attnlab.studies.integrity import read_table
from attnlab.studies.integrity.tables.formats.latex import find_latex

TABULAR = r"\begin{tabular}{lc} Model & Test \\ A & 81.2 $\pm$ 0.3 \\ B & 82.0 $\pm$ 0.3 \\ \end{tabular}"
FLOAT = "\\begin{table}\n\\caption{%s}\\label{tab:x}\n" + TABULAR + "\n\\end{table}\n"


def _list_captions(text: str) -> list[str]:
    return [" ".join(block.caption.split()) for block in find_latex(text)]


def test_floats() -> None:
    captions = _list_captions(FLOAT % "one" + "\nText over 9 seeds.\n\n" + FLOAT % "two")
    assert ["one" in caption for caption in captions] == [True, False]
    assert ["two" in caption for caption in captions] == [False, True]
    assert not any("9 seeds" in caption or "tab:x" in caption or "81.2" in caption for caption in captions)


def test_two_tables_of_one_float_share_its_caption() -> None:
    inner = "\\begin{subtable}{.5\\textwidth}\\caption{%s}" + TABULAR + "\\end{subtable}"
    captions = _list_captions("\\begin{table}\\caption{both}" + inner % "left" + inner % "right" + "\\end{table}")
    assert all("both" in caption for caption in captions)
    assert ["left" in caption for caption in captions] == [True, False]


def test_tables_without_a_float_have_the_text_before_them() -> None:
    captions = _list_captions(f"first\n{TABULAR}\nsecond\n{TABULAR}\nend")
    assert captions == ["first", "second end"]


def test_the_caption_of_a_longtable_is_inside() -> None:
    long = TABULAR.replace("tabular", "longtable").replace("{lc}", r"{lc} \caption{inside} \\")
    assert "inside" in _list_captions(long + TABULAR)[0]


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, {"means with ± standard error (the caption)", "8 seeds each (the caption)"}),
        (2, {"means with ± SD (--spread se or ci if it is not)", "metric accuracy (from the caption)"}),
    ],
)  # fmt: skip
def test_what_captions_say_is_not_pooled(number: int, words: set[str], tmp_path: Path) -> None:
    path = tmp_path / "t.tex"
    path.write_text(FLOAT % "Loss, mean and standard error over 8 seeds." + FLOAT % "Accuracy.", encoding="utf-8")
    table = read_table(str(path), f"table={number}")
    assert words <= {*table.layout}
    assert {cell.num_seeds for cell in table.cells} == {8 if number == 1 else None}
