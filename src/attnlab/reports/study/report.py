"""A report of a study's folder: the page, the tables and the figures, made anew from the ledger at any time."""

from __future__ import annotations

from pathlib import Path

from attnlab.charts import FORMATS
from attnlab.charts.theme import FILE
from attnlab.studies.record import open_record

from .contents import Contents, contents_of
from .figures import KINDS, TRACES
from .files import put, remove_others
from .latex import as_latex
from .markdown import as_markdown
from .page import render
from .tables import per_seed, summary

REPORT = "report.html"
TABLES, FIGURES = "tables", "figures"
PICTURES = (".svg", ".png")


def write(folder: str | Path) -> Path:
    """Write the report of a study beside its ledger, also of one that has not ended; return where the page is."""
    with open_record(folder) as record:
        contents = contents_of(record)
        tables = record.folder / TABLES
        put(tables / "per_seed.csv", per_seed(record))
        put(tables / "summary.csv", summary(contents.places))
        put(tables / "results.md", as_markdown(contents.headline, contents.places))
        put(tables / "results.tex", as_latex(contents.headline, contents.places))
        write_figures(record.folder / FIGURES, contents)
        return put(record.folder / REPORT, render(contents))


def write_figures(folder: Path, contents: Contents) -> None:
    """Write every chart for a paper, and take away those that no longer belong."""
    kept = set()
    for figure in contents.all_figures:
        spec = figure.draw(FILE)
        # Hundreds of pale lines take seconds as pixels, and nobody prints a trace that way.
        endings = PICTURES[:1] if figure.kind == TRACES else PICTURES
        kept |= {put(folder / f"{figure.name}{ending}", FORMATS[ending](dict(spec))) for ending in endings}
    remove_others(folder, KINDS, kept)
