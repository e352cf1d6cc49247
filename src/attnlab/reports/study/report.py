"""Write the report of a study's folder from its ledger: the page, the tables and the figures."""

from collections.abc import Mapping
from pathlib import Path

from attnlab.charts import png
from attnlab.charts.theme import print_on_white
from attnlab.inputs import expand_path
from attnlab.studies.answers.study_folder import open_record

from .contents import Contents, collect_contents
from .figures import KINDS, TRACES
from .files import make_place, remove_stale_figures, write_atomically
from .joint import COLUMNS as JOINT_COLUMNS
from .joint import list_joint_rows
from .latex import write_latex
from .page import Drawing, draw_figures, render_page
from .tables import write_csv, write_markdown, write_per_seed, write_summary, write_targets

REPORT = "report.html"
TABLES, FIGURES = "tables", "figures"


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report of a study, finished or not, into `out` or beside its ledger; return the path of the page."""
    with open_record(folder) as record:
        contents = collect_contents(record)
        place = make_place(record.folder if out is None else expand_path(out))
        tables = place / TABLES
        write_atomically(tables / "per_seed.csv", write_per_seed(record))
        write_atomically(tables / "summary.csv", write_summary(contents.places))
        if record.joint_answers:
            write_atomically(tables / "joint.csv", write_csv(JOINT_COLUMNS, list_joint_rows(record.joint_answers)))
        write_atomically(tables / "results.md", write_markdown(contents.headline, contents.places))
        write_atomically(tables / "results.tex", write_latex(contents.headline, contents.places))
        if contents.targets:
            write_atomically(tables / "targets.csv", write_targets(contents.targets))
        drawings = draw_figures(contents)
        _write_figures(place / FIGURES, contents, drawings)
        return write_atomically(place / REPORT, render_page(contents, drawings))


def _write_figures(folder: Path, contents: Contents, drawings: Mapping[str, Drawing]) -> None:
    kept = set()
    for figure in contents.all_figures:
        picture = print_on_white(str(drawings[figure.name].picture), figure.caption)
        kept.add(write_atomically(folder / f"{figure.name}.svg", picture))
        # Hundreds of pale lines take seconds to rasterize, and traces are not printed.
        if figure.kind != TRACES:
            kept.add(write_atomically(folder / f"{figure.name}.png", png(picture)))
    remove_stale_figures(folder, KINDS, kept)
