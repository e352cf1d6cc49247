"""The page of a report: one HTML file that opens offline, loads nothing, and runs only its own two scripts.

Its policy names those scripts and its style by their hashes, so that no text of a dataset can become code. Every chart
is there twice: as a picture, and as a spec that the bundled Vega makes live where scripts are allowed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from attnlab.charts import Spec, runtime, svg
from attnlab.charts.theme import PAGE

from .cells import COLUMNS
from .contents import Contents
from .figures import Figure

HERE = Path(__file__).parent
LOOKED_FOR = (
    "leaks, held-out examples that are trained on, values that repeat, one answer to everything, impossible values, "
    "spread on one seed, other budgets and parameters, figures that differ from their scores, and claims that so few "
    "seeds cannot carry"
)
SECTIONS = {
    "effects": "Effects", "curves": "Learning curves", "results": "Results", "audits": "Audits",
    "traces": "Inside the models", "samples": "Samples", "data": "Data", "words": "The words", "origin": "What was run",
    "integrity": "Integrity", "limits": "Limits",
}  # fmt: skip


class Drawing(NamedTuple):
    """A chart as a page has it: its id, its picture, and its spec."""

    id: str
    picture: Markup
    spec: Markup


def render_page(shown: Contents) -> str:
    """Write the page."""
    # Only our own pictures, specs, style and scripts are Markup; all else is escaped, and a misspelt name is an error.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    drawings = {figure.name: _draw_figure(number, figure) for number, figure in enumerate(shown.all_figures)}
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    library = runtime() if drawings else ""
    rows = [[answer(row) for answer in COLUMNS.values()] for place in shown.places for row in place.rows]
    template = environment.from_string((HERE / "page.html").read_text(encoding="utf-8"))
    return template.render(
        shown=shown,
        drawings=drawings,
        rows=rows,
        columns=[(name, rows[0][number].is_number) for number, name in enumerate(COLUMNS)],
        sections=_list_sections(shown),
        looked_for=LOOKED_FOR,
        policy=_write_policy([script, library] if library else [script], style),
        style=Markup(style),
        script=Markup(script),
        runtime=Markup(library),
    )


def _draw_figure(number: int, figure: Figure) -> Drawing:
    """Draw a chart in the page's own colours."""
    spec = figure.draw(PAGE)
    return Drawing(f"chart-{number}", Markup(svg(spec)), Markup(_dump_spec(spec)))


def _dump_spec(spec: Spec) -> str:
    """Write a spec so that nothing in it can end the element that it stands in."""
    written = json.dumps(spec, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _write_policy(scripts: Sequence[str], style: str) -> str:
    """Return what a page may do: run these scripts, take this style, and nothing else."""
    allowed = " ".join(_hash_text(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash_text(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash_text(text: str) -> str:
    """Return the hash by which a policy knows an element."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _list_sections(shown: Contents) -> list[tuple[str, str]]:
    """List the sections that a page has."""
    has = {
        "effects": shown.effects, "curves": shown.curves, "traces": shown.traced or shown.traces,
        "samples": shown.samples or shown.sentences, "words": shown.headline.meanings,
    }  # fmt: skip
    return [(name, title) for name, title in SECTIONS.items() if has.get(name, True)]
