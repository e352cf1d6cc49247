"""A Vega-Lite spec as a file: a picture (.svg, .png), a page that opens offline (.html), or plain (.json)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attnlab.errors import RequestError

Spec = Mapping[str, Any]
"""A Vega-Lite chart as plain data."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
VERSION = "6.4"
PIXELS_PER_UNIT = 2.0
"""How much finer a PNG is than the spec's sizes, so that it stays sharp in print and on dense screens."""


def save(spec: Spec, path: str | Path) -> Path:
    """Write a chart in the format that the file's ending names; return where it went."""
    target = check(path)
    content = FORMATS[target.suffix.lower()](dict(spec))
    try:
        target.write_bytes(content)
    except OSError as error:
        raise RequestError(f"cannot write the chart to {target}: {error.strerror}") from error
    return target


def check(path: str | Path) -> Path:
    """Refuse a path that `save` could not write to, before anyone computes what is to be drawn."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        ending = f"'{target.suffix}'" if target.suffix else "no ending"
        raise RequestError(f"a chart's file ends in one of {', '.join(FORMATS)}; {target} has {ending}")
    folder = target.parent
    if not folder.is_dir():
        raise RequestError(f"cannot write the chart to {target}: there is no folder {folder}")
    try:
        is_new = not target.exists()
        # Only opening it tells: a folder may be full, read-only or gone whatever its permissions say.
        with target.open("ab"):
            pass
        if is_new:
            target.unlink()
    except OSError as error:
        raise RequestError(f"cannot write the chart to {target}: {error.strerror}") from error
    return target


# vl-convert is imported in the functions that need it: it takes 30 MB and its time, and --help must not pay.


def svg(spec: Spec) -> str:
    """Return a chart as an SVG element, to be put into a page."""
    import vl_convert

    return vl_convert.vegalite_to_svg(dict(spec), vl_version=VERSION)


def png(picture: str) -> bytes:
    """Return an SVG element as pixels; a chart that is wanted as both is then drawn once."""
    import vl_convert

    return vl_convert.svg_to_png(picture, scale=PIXELS_PER_UNIT)


@cache
def runtime() -> str:
    """Return the script that gives a page `vegaEmbed`, which makes specs live without a network."""
    import vl_convert

    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION)


def _as_svg(spec: dict[str, Any]) -> bytes:
    return svg(spec).encode()


def _as_png(spec: dict[str, Any]) -> bytes:
    return png(svg(spec))


def _as_html(spec: dict[str, Any]) -> bytes:
    import vl_convert

    return vl_convert.vegalite_to_html(spec, vl_version=VERSION, bundle=True).encode()


def _as_json(spec: dict[str, Any]) -> bytes:
    return (json.dumps(spec, indent=2, ensure_ascii=False) + "\n").encode()


FORMATS: Mapping[str, Callable[[dict[str, Any]], bytes]] = MappingProxyType(
    {".svg": _as_svg, ".png": _as_png, ".html": _as_html, ".json": _as_json}
)
"""What writes each kind of file, by its ending."""


def stacked(specs: Sequence[Spec], columns: int = 1) -> Spec:
    """Put charts below one another, or so many in a row; one alone stays as it is."""
    if len(specs) == 1:
        return specs[0]
    inner = [{key: value for key, value in spec.items() if key not in ("$schema", "config")} for spec in specs]
    return {"$schema": SCHEMA, "concat": inner, "columns": columns, "spacing": 40, "config": specs[0]["config"]}
