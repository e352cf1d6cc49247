r"""Macros of a file are expanded, `\std{0.4}` is a spread, and a macro that is not known is never glued to a number."""

from pathlib import Path

import pytest

from attnlab.errors import RequestError
from attnlab.studies.integrity import read_table
from attnlab.studies.integrity.tables.formats.latex_macros import expand_macros
from attnlab.studies.integrity.tables.formats.latex_text import to_plain_text


@pytest.mark.parametrize(
    ("definitions", "cell", "text"),
    [
        ("", r"82.4\std{0.2}", "82.4 ± 0.2"),
        ("", r"82\std{.4}", "82 ± .4"),
        ("", r"82\sd{1.2}", "82 ± 1.2"),
        ("", r"82.4\pm{0.2}", "82.4 ± 0.2"),
        ("", r"$82.4 \pm \stdev{0.2}$", "82.4 ± 0.2"),
        ("", r"\ms{90.1}{0.3}", "90.1 ± 0.3"),
        ("", r"\meanstd{\textbf{90.1}}{0.3}", "90.1 ± 0.3"),
        ("", r"\std{Softmax}", "Softmax"),
        (r"\newcommand{\std}[1]{{\scriptsize$\pm$#1}}", r"82.4\std{0.2}", "82.4± 0.2"),
        (r"\newcommand{\sd}[1]{{\tiny $\downarrow$ #1}}", r"82\sd{1.2}", "82 ↓ 1.2"),
        (r"\newcommand{\std}[1]{{\color{gray}\tiny #1}}", r"82\std{1.2}", "82 ± 1.2"),
        (r"\newcommand{\std}[1]{\tiny{#1}}", r"82\std{1.2}", "82 ± 1.2"),
        (r"\renewcommand*\sd[1]{(+#1)}", r"82.4 \sd{0.2}", "82.4 (+0.2)"),
        (r"\def\res#1#2{#1\spread{#2}} \def\spread#1{$_{\pm #1}$}", r"\res{82.4}{0.2}", "82.4 ± 0.2"),
        (r"\NewDocumentCommand{\res}{m m}{#1 (#2)}", r"\res{82.4}{0.2}", "82.4 (0.2)"),
        (r"\newcommand{\res}[2][0.1]{#2 $\pm$ #1}", r"\res[0.3]{82.4}", "82.4 ± 0.3"),
        (r"\newcommand{\res}[2][0.1]{#2 $\pm$ #1}", r"\res{82.4}", "82.4 ± 0.1"),
        (r"\newcommand{\ours}{Cosine (ours)}", r"\ours", "Cosine (ours)"),
        (r"\newcommand{\gain}[1]{}", r"82.4\gain{0.5}", "82.4"),
    ],
)
def test_macros_are_expanded(definitions: str, cell: str, text: str) -> None:
    assert to_plain_text(expand_macros(f"{definitions}\n{cell}")) == text


def test_lines_stay_in_place() -> None:
    text = "\\newcommand{\\a}[1]{%\nx\n#1}\n\\a{y\n}\nend"
    assert expand_macros(text).split("\n").index("end") == text.split("\n").index("end")


def test_macros_that_use_each_other_end() -> None:
    assert len(expand_macros(r"\def\a{\b\b\a} \def\b{\a\a} \a")) < 1_000_000


def write_table(folder: Path, cell: str, definitions: str = "") -> str:
    path = folder / "t.tex"
    rows = rf"Model & Accuracy \\ \midrule Base & 81.0 $\pm$ 0.3 \\ Ours & {cell} \\"
    path.write_text(f"{definitions}\n\\begin{{tabular}}{{lc}}\n{rows}\n\\end{{tabular}}", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("cell", "macro"),
    [
        (r"82.4\gain{0.5}", r"\gain"), (r"82\gain{.4}", r"\gain"), (r"82 \up 5", r"\up"), (r"82\tiny{1.2}", r"\tiny"),
        (r"82{\scriptsize 1.2}", r"\scriptsize"), (r"\result{82.4}{0.2}", r"\result"), (r"82.4\se{0.2}", r"\se"),
        (r"\textbf{82}\gain{1.2}", r"\gain"), (r"82\textcolor{gray}{1.2}", r"\textcolor"),
    ],
)  # fmt: skip
def test_an_unknown_macro_in_a_number_is_named_with_what_to_do(cell: str, macro: str, tmp_path: Path) -> None:
    with pytest.raises(RequestError) as raised:
        read_table(write_table(tmp_path, cell))
    assert f"line 3 of '{tmp_path / 't.tex'}': it is not clear what {macro} in '{cell}' does" in str(raised.value)
    assert rf"\newcommand{{{macro}}}[1]{{$\pm$ #1}}" in str(raised.value)
    assert "write ± in its place" in str(raised.value)


def test_the_advice_works(tmp_path: Path) -> None:
    table = read_table(write_table(tmp_path, r"82\gain{1.2}", r"\newcommand{\gain}[1]{$\pm$ #1}"))
    assert [(cell.value, cell.sd) for cell in table.cells] == [(81.0, 0.3), (82.0, 1.2)]


@pytest.mark.parametrize("cell", [r"\second{82.4}", r"\second{82.4 $\pm$ 0.2}", r"\red{82.4} $\pm$ \red{0.2}"])
def test_an_unknown_macro_around_a_number_is_a_style(cell: str, tmp_path: Path) -> None:
    assert read_table(write_table(tmp_path, cell)).cells[-1].value == 82.4
