"""LaTeX around numbers and names is removed; a subscript beside a number is its spread."""

import pytest

from attnlab.studies.integrity.tables.formats.latex_text import read_groups, split_outside_braces, to_plain_text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\textbf{$82.1_{\pm 0.4}$}", "82.1 ± 0.4"),
        (r"$\mathbf{82.1}_{\pm 0.4}$", "82.1 ± 0.4"),
        (r"82.1 {\scriptsize $\pm$ 0.4}", "82.1 ± 0.4"),
        (r"82.1$_{0.4}$", "82.1 ± 0.4"),
        (r"82.1\textsubscript{$\pm$0.4}", "82.1 ± 0.4"),
        (r"82.1 \tiny{(0.4)}", "82.1 (0.4)"),
        (r"\underline{82.1}$^{\dagger}$", "82.1"),
        (r"\cellcolor{gray!20}{\bf 82.1\%}", "82.1%"),
        (r"\textcolor{red}{81.2}", "81.2"),
        (r"Ours~\citep[see][]{foo,bar}", "Ours"),
        (r"PPL $\downarrow$", "PPL ↓"),
        (r"Ours ($\alpha{=}0.5$)", "Ours (α=0.5)"),
        (r"$\gamma x$-Net", "γx-Net"),
        (r"(acc $\uparrow$)", "(acc ↑)"),
        (r"d\_model \& $d_{\text{model}}$", "d_model & d_model"),
        (r"1{,}234", "1,234"),
        (r"--", "–"),
        (r"Linformer$^\dagger$", "Linformer†"),
        (r"Linformer$^{\dagger,1}$", "Linformer†"),
        (r"Linformer\textsuperscript{\ddag}", "Linformer‡"),
        (r"\textbf{Ours}$^*$", "Ours*"),
        (r"Ours$^\ast$", "Ours*"),
        (r"GPT-2$^1$", "GPT-2"),
        (r"82.1$^\dagger$", "82.1"),
        (r"82.1\textsuperscript{*}", "82.1"),
        (r"82.1\textsubscript{0.4}", "82.1 ± 0.4"),
        (r"82.1$^{1}$", "82.1"),
        (r"82.1$^1$", "82.1"),
        (r"\textbf{82.1}$^{1,2}$", "82.1"),
        (r"82.1\textsuperscript{12}", "82.1"),
        (r"82.1$^{(3)}$", "82.1"),
        (r"82.1$^{1}$ $\pm$ 0.4", "82.1 ± 0.4"),
        (r"$82.1_{\pm 0.4}^{1}$", "82.1 ± 0.4"),
        (r"82.1$^{\pm 1}$", "82.1 ± 1"),
        (r"82.1$^{0.4}$", "82.1 ± 0.4"),
        (r"82.1$_{1}$", "82.1 ± 1"),
        (r"82.1 {\footnotesize\textcolor{gray}{$\pm$ 0.4}}", "82.1 ± 0.4"),
        (r"\makecell{82.1 \\ (0.4)}", "82.1 (0.4)"),
        (r"\scalebox{0.8}{82.1}", "82.1"),
    ],
)
def test_plain_text(latex: str, text: str) -> None:
    assert to_plain_text(latex) == text


def test_cells_and_groups() -> None:
    assert [part for _, part in split_outside_braces(r"a & {b & c} & d \& e", "&")] == ["a ", " {b & c} ", r" d \& e"]
    assert read_groups("{2}[x]{c{c}} {text}", 0, 3)[0] == ["2", "c{c}", "text"]
    assert read_groups("{2}{open", 0, 2)[0] == ["2", "ope"]
