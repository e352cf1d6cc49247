"""The page of the catalog: one HTML file with its pictures inside, which loads nothing and runs no script."""

import platform
import re
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import jinja2

from attnlab.audits import FindingKind, picture
from attnlab.charts import growth, heatmap, svg, theme
from attnlab.kernels import describe_loops
from attnlab.kernels.measure import show_bytes, show_seconds, three_digits
from attnlab.mechanisms import CATALOG
from attnlab.visible import make_output_visible

from .catalog_results import TOKENS, CatalogResults

TEMPLATE = Path(__file__).with_name("catalog_page.html")
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")


def render_catalog_page(shown: CatalogResults, command: str) -> str:
    """Write the page of the catalog."""
    # The template marks our own pictures as safe; all else is escaped, and an unknown name is an error.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, finalize=make_output_visible
    )
    environment.filters |= {
        "seconds": show_seconds, "bytes": show_bytes, "digits": three_digits, "cited": split_citation,
    }  # fmt: skip
    # Time and memory are two pictures, which a narrow page puts one below the other.
    growth_titles = {
        "milliseconds": "Time of a forward and backward pass", "megabytes": "Peak memory beyond the inputs"
    }  # fmt: skip
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        shown=shown, headline=_list_headline_figures(shown), entries=CATALOG, facts=list_facts(shown, command),
        kernels={result.choice.kernel: result.choice.reason for result in shown.mechanisms},
        growth=[
            svg(growth.draw(shown.points, title, fields=[field], theme=theme.PAGE))
            for field, title in growth_titles.items()
        ],
        pictures=[svg(heatmap.draw([weights], TOKENS, theme=theme.PAGE)) for weights in shown.pictures],
        soundness=_draw_soundness(shown),
    )  # fmt: skip


def _list_headline_figures(shown: CatalogResults) -> list[tuple[str, str]]:
    """Return the figures at the top of the page, each with its explanation."""
    results = shown.mechanisms
    worst = max(result.agreement.error for result in results)
    num_near = sum(result.time_ratio <= 1.5 for result in results)
    longest = max(point.length for point in shown.points)
    # The baseline is the first of the mechanisms whose growth is measured.
    baseline, *others = [point for point in shown.points if point.length == longest]
    fastest = min([baseline, *others], key=lambda point: point.seconds)
    speedup, name = three_digits(baseline.seconds / fastest.seconds), fastest.name.partition(" · ")[0]
    remainder = f"; {shown.remainder}" if shown.remainder else ""
    return [
        (shown.score, f"agree with the reference in fp64, outputs and gradients{remainder}"),
        (f"{worst:.1e}", "is the largest error of any of them, relative to the largest number"),
        (f"{num_near} of {len(results)}", "take at most 1.5 times as long as torch's own SDPA"),
        (f"{speedup}×", f"the baseline's speed, with {name} at length {longest}"),
    ]


def _draw_soundness(shown: CatalogResults) -> list[str]:
    """Draw two leak maps, one sound and one with a leak, and the growth of an output that fails by its magnitude."""
    kinds: dict[str, FindingKind] = {"baseline": "leak", "leaking-mask": "leak", "undivided-linear": "magnitude"}
    return [
        svg(picture.draw(shown.audits[name], theme.PAGE, only=kind))
        for name, kind in kinds.items()
        if name in shown.audits and any(finding.kind == kind for finding in shown.audits[name].findings.values())
    ]


def split_citation(paper: str) -> tuple[str, str]:
    """Split a citation into its text and its arXiv number, which is empty if it has none."""
    number = ARXIV.search(paper)
    return (paper[: number.start()], number[1]) if number else (paper, "")


def list_facts(shown: CatalogResults, command: str) -> dict[str, str]:
    """List what was run and on which machine."""
    loops = describe_loops()
    return {
        "Command": command, "When": f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}, in {shown.seconds:.0f} s",
        "Versions": f"attnlab {version('attnlab')}, Python {platform.python_version()}, torch {shown.machine.torch}",
        "Machine": str(shown.machine), "Compiled loops": f"{loops.name} ({loops.reason})",
        "Checked on": shown.where_checked, "Timed on": shown.where_costs,
        "Data": "drawn from fixed seeds; nothing was downloaded",
    }  # fmt: skip
