"""The rows of a LaTeX table: headers of several lines, spans, sections, comments, and tables that are not closed."""

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity.tables.formats.latex import find_latex, is_latex, read_latex


def test_rows_without_an_environment() -> None:
    text = "Model & EM & F1 \\\\ \\hline\nbase & 80 & 88 \\\\[2pt]\n% old & 1 & 2 \\\\\nours & 81 \\\\"
    assert is_latex(text)
    (block,) = find_latex(text)
    assert block.header == ["Model", "EM", "F1"]
    assert block.rows == [(2, ["base", "80", "88"]), (4, ["ours", "81", ""])]
    assert read_latex("t.tex", block).form == "a LaTeX table"


def test_spans_and_empty_first_cells_are_filled() -> None:
    text = r"""\begin{tabularx}{\textwidth}{llX}
    Model & Data & \makecell{EM\\(\%)} \\ \midrule
    \multirow{2}{*}{base} & SQuAD & 80 \\
     & NQ & 40 \\
    ours & SQuAD & 81 \\
     & NQ & 41 \\
    \end{tabularx}"""
    (block,) = find_latex(text)
    assert block.header == ["Model", "Data", "EM (%)"]
    assert [row for _, row in block.rows] == [
        ["base", "SQuAD", "80"], ["base", "NQ", "40"], ["ours", "SQuAD", "81"], ["ours", "NQ", "41"],
    ]  # fmt: skip


@pytest.mark.parametrize("rule", [r"\cmidrule(lr){3-4}", "", r"\midrule"])
def test_rows_of_results_are_no_header(rule: str) -> None:
    text = rf"""\begin{{tabular}}{{llcc}} \toprule
    \multirow{{2}}{{*}}{{Size}} & \multirow{{2}}{{*}}{{Method}} & MNLI & CoLA \\
     & & Acc. & MCC \\ {rule}
    \multirow{{2}}{{*}}{{Small}} & Softmax & 80.2 $\pm$ 0.3 & 44.9 \\
     & Ours & 81.9 & 46.1 \\ \midrule
    \multirow{{2}}{{*}}{{Base}} & Softmax & 84.3 & 57.0 \\
     & Ours & 84.7 & 57.9 \\ \bottomrule
    \end{{tabular}}"""
    (block,) = find_latex(text)
    assert block.header == ["Size", "Method", "MNLI Acc.", "CoLA MCC"]
    assert [row[:2] for _, row in block.rows] == [
        [size, arm] for size in ("Small", "Base") for arm in ("Softmax", "Ours")
    ]


@pytest.mark.parametrize("name", ["Model", ""])
def test_numbers_in_the_second_row_of_a_header(name: str) -> None:
    rows = rf"& \multicolumn{{2}}{{c}}{{Length}} \\ {name} & 512 & 1024 \\ \midrule base & 80 & 81 \\"
    (block,) = find_latex(rf"\begin{{tabular}}{{lcc}} {rows} \end{{tabular}}")
    assert block.header == [name, "Length 512", "Length 1024"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r"\begin{tabular}{ll} a & b \\ 1 & 2 \\", r"the table that begins at line 1 has no .end\{tabular\}"),
        (r"\begin{tabular}{ll} \hline \end{tabular}", "has no rows"),
    ],
)
def test_what_is_no_table(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        find_latex(text)


def test_a_row_may_end_in_tabularnewline() -> None:
    text = r"""arm & F1 & verdict \\
    dot & 81.0 & \raggedright baseline \tabularnewline
    ours & 82.0 & \raggedright BETTER \tabularnewline[2pt]"""
    assert is_latex(text.split("\n", 1)[1])
    (block,) = find_latex(text)
    assert [row for _, row in block.rows] == [["dot", "81.0", "baseline"], ["ours", "82.0", "BETTER"]]
