"""Tables that other programs read: CSV without formulas, Markdown and LaTeX without anything that acts."""

from __future__ import annotations

import csv
import io
import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from attnlab.reports.study.contents import collect_contents
from attnlab.reports.study.latex import write_latex
from attnlab.reports.study.tables import write_csv, write_markdown, write_per_seed, write_summary
from attnlab.studies.answers.study_folder import open_record
from attnlab.studies.integrity.tables.reading import read_table

from .made import BASE, HIGH, Made

SPECIAL = r"50 % & more_of #1 {or} $2 ~ ^ \ <b> | `x` [a](b) *c*"


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_no_text_is_a_formula(cell: str) -> None:
    assert read(write_csv(["a"], [[cell]]))[0]["a"] == f"'{cell}".replace("\r", " ")


def test_numbers_stay_numbers_and_what_is_none_is_empty() -> None:
    assert write_csv(["a", "b", "c", "d"], [[-1.5, math.nan, "Infinity", None]]) == "a,b,c,d\n-1.5,,,\n"


def test_quotes_commas_and_line_ends_come_back() -> None:
    text = 'a, "b"\nc'
    assert read(write_csv(["a"], [[text]]))[0]["a"] == text


def test_the_summary_has_what_was_compared(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE).give("better", HIGH)
    with open_record(made.done()) as record:
        baseline, better = read(write_summary(collect_contents(record).places))
        assert [row["accuracy"] for row in read(write_per_seed(record))] == [str(value) for value in BASE + HIGH]
    assert (baseline["is_baseline"], baseline["verdict"], baseline["difference"]) == ("True", "", "")
    assert float(baseline["mean"]) == pytest.approx(0.51)
    assert (better["verdict"], better["is_comparable"], better["seeds"]) == (
        "BETTER BY AT LEAST 0.02 AT SHARED SETTINGS",
        "True",
        "5",
    )
    assert float(better["difference"]) == pytest.approx(0.102)
    assert float(better["low"]) < 0.102 < float(better["high"])
    assert float(better["p"]) < 0.01


def test_latex_and_markdown_show_special_signs_as_they_are(tmp_path: Path) -> None:
    made = Made(tmp_path, question=SPECIAL)
    made.give("dot", BASE).give("better", HIGH)
    with open_record(made.done()) as record:
        found = collect_contents(record)
    tex, plain = write_latex(found.headline, found.places), write_markdown(found.headline, found.places)
    assert (
        r"50 \% \& more\_of \#1 \{or\} \$2 \textasciitilde{} \textasciicircum{} \textbackslash{} "
        r"\textless{}b\textgreater{} \textbar{}" in tex
    )
    assert tex.count(r"\toprule") == tex.count(r"\midrule") == tex.count(r"\bottomrule") == 1
    assert r"\<b\> \| \`x\` \[a\](b) \*c\*" in plain
    rows = [line for line in plain.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
    assert "BETTER" in rows[3]


def test_the_latex_table_stands_alone(folder: Path) -> None:
    table = (folder / "tables" / "results.tex").read_text(encoding="utf-8")
    assert "Means and SDs over seeds of accuracy (higher is better)" in table
    assert "Differences are to dot with intervals at 95" in table
    assert (
        r"better: \texttt{cosine \textbar{} softmax}; leaking: \texttt{dot \textbar{} softmax \textbar{} mask(after)}"
        in table
    )
    assert r"leaking & 0.906$\dagger$ & " in table
    assert r"$\dagger$ measured with access to future tokens." in table
    with open_record(folder) as record:
        notes = collect_contents(record).headline.list_notes()
    assert notes
    plain = (
        table.replace("$-$", "−")
        .replace(r"\textless{}", "<")
        .replace("--", "–")
        .replace(r"\%", "%")
        .replace(r"\_", "_")
    )
    assert [note for note in notes if note.removesuffix(".") not in plain] == []


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex: apt-get install texlive-latex-base")
def test_the_latex_table_compiles(folder: Path, tmp_path: Path) -> None:
    table = (folder / "tables" / "results.tex").read_text(encoding="utf-8")
    paper = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{table}\end{{document}}"
    (tmp_path / "paper.tex").write_text(paper, encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"], cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout, done.stdout[-2000:]


def test_phases_with_metrics_of_their_own_have_a_column_for_them(tmp_path: Path) -> None:
    made = Made(tmp_path)
    made.give("dot", BASE).give("better", HIGH)
    with open_record(made.done()) as record:
        found = collect_contents(record)
    (place,) = found.places
    alone, both = (
        write_latex(found.headline, places)
        for places in ([place], [place, replace(place, phase="text", figure="perplexity")])
    )
    assert "metric" not in alone
    assert "arm & phase & metric & " not in alone
    assert r"better & accuracy & " in both
    assert r"better & perplexity & " in both


def test_judge_reads_the_latex_table(folder: Path) -> None:
    table = read_table(str(folder / "tables" / "results.tex"))
    assert table.arms == ["dot", "better", "leaking", "worse"]
    assert {cell.metric for cell in table.values} == {"accuracy"}
    assert all(cell.sd is not None for cell in table.values)
