"""The page of a report: one HTML file that opens offline, loads nothing, and runs only its own two scripts.

Its policy lists the hashes of these scripts and its style, so that no text of a dataset can become code. It contains
every chart twice: as a picture, and as a spec that the bundled Vega makes interactive if scripts are allowed.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from attnlab.charts import Spec, runtime, svg
from attnlab.charts.theme import PAGE
from attnlab.studies.answers.target import COLUMNS as TARGET_COLUMNS
from attnlab.studies.answers.target import NOTE as TARGET_NOTE
from attnlab.visible import make_output_visible, make_values_visible

from .cells import COLUMNS, choose_columns
from .contents import Contents
from .figures import Figure

HERE = Path(__file__).parent
CHECKED = (
    "leaks, training on held-out examples, repeated values, constant predictions, impossible values, spread of one "
    "seed, different budgets and parameters, figures that differ from their scores, and claims on too few seeds"
)
SECTIONS = {
    "effects": "Effects", "costs": "Cost", "curves": "Learning curves", "results": "Results", "targets": "Targets",
    "audits": "Audits", "attention": "Attention", "traces": "Inside the models", "samples": "Samples", "data": "Data",
    "words": "The words", "origin": "What was run", "integrity": "Integrity", "limits": "Limits",
}  # fmt: skip


class Drawing(NamedTuple):
    """A chart in the page's colours: its id, its picture as SVG, and its spec as JSON."""

    id: str
    picture: Markup
    spec: Markup


def draw_figures(shown: Contents) -> dict[str, Drawing]:
    """Draw every chart of a page once; return them by the names of their files."""
    return {figure.name: _draw_figure(number, figure) for number, figure in enumerate(shown.all_figures)}


def render_page(shown: Contents, drawings: Mapping[str, Drawing] | None = None) -> str:
    """Write the page, with charts that are drawn already or with all of them drawn now."""
    drawings = draw_figures(shown) if drawings is None else drawings
    # Only our own pictures, specs, style and scripts are Markup; the rest is escaped, and a misspelt name is an error.
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=make_output_visible,
    )
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    library = runtime() if drawings else ""
    arms = [row for place in shown.places for row in place.rows]
    names = choose_columns(arms)
    rows = [[COLUMNS[name](row) for name in names] for row in arms]
    template = environment.from_string((HERE / "page.html").read_text(encoding="utf-8"))
    return template.render(
        shown=shown,
        drawings=drawings,
        rows=rows,
        columns=[(name, rows[0][number].is_number) for number, name in enumerate(names)],
        sections=_list_sections(shown),
        checked=CHECKED,
        target_columns=TARGET_COLUMNS,
        target_note=TARGET_NOTE,
        policy=_write_policy([script, library] if library else [script], style),
        style=Markup(style),
        script=Markup(script),
        runtime=Markup(library),
    )


def _draw_figure(number: int, figure: Figure) -> Drawing:
    spec = figure.draw(PAGE)
    return Drawing(f"chart-{number}", Markup(svg(spec)), Markup(_dump_spec(spec)))


def _dump_spec(spec: Spec) -> str:
    """Write a spec so that nothing in it can end its script element."""
    written = json.dumps(make_values_visible(spec), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c")


def _write_policy(scripts: Sequence[str], style: str) -> str:
    allowed = " ".join(_hash_text(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash_text(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash_text(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _list_sections(shown: Contents) -> list[tuple[str, str]]:
    has = {
        "effects": shown.effects, "costs": shown.costs, "curves": shown.curves, "traces": shown.traced or shown.traces,
        "attention": shown.attention, "samples": shown.samples or shown.sentences, "words": shown.headline.meanings,
        "targets": shown.targets,
    }  # fmt: skip
    return [(name, title) for name, title in SECTIONS.items() if has.get(name, True)]
