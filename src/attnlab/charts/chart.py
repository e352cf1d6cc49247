"""A Vega-Lite spec as a file: a picture (.svg, .png), a page that opens offline (.html), or plain (.json)."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attnlab.errors import RequestError
from attnlab.inputs import expand_path
from attnlab.visible import make_values_visible

from .drawing_cache import load_or_draw

Spec = Mapping[str, Any]
"""A Vega-Lite chart as plain data."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
VERSION = "6.4"
MIME = "application/vnd.vegalite.v6+json"
"""What a notebook that draws such charts itself calls them."""
PIXELS_PER_UNIT = 2.0
"""The resolution of a PNG relative to the spec's sizes, so that it is sharp in print and on dense screens."""


class Chart(dict[str, Any]):
    """A chart that a notebook draws: as Vega-Lite where it knows that, else as an SVG."""

    def __repr__(self) -> str:
        title = self.get("title") or ""
        words = title.get("text", "") if isinstance(title, dict) else title
        return (
            f"<Chart {words!r}; .save(path) writes it to a file>"
            if words
            else "<Chart; .save(path) writes it to a file>"
        )

    def save(self, path: str | Path) -> Path:
        """Write the chart to a file, in the format of its ending: .svg, .png, .html or .json; return its path."""
        return save(self, path)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {MIME: make_values_visible(dict(self)), "image/svg+xml": svg(self), "text/plain": repr(self)}


def save(spec: Spec, path: str | Path) -> Path:
    """Write a chart in the format of the file's ending; return its path."""
    target = check(path)
    content = FORMATS[target.suffix.lower()](dict(spec))
    aside = target.with_name(f".{target.name}.writing")
    try:
        aside.write_bytes(content)
        aside.replace(target)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise RequestError(f"cannot write the chart to {target}: {error.strerror}") from error
    return target


def check(path: str | Path) -> Path:
    """Refuse a path that `save` could not write to, before the chart is computed."""
    target = expand_path(path)
    if target.suffix.lower() not in FORMATS:
        ending = f"'{target.suffix}'" if target.suffix else "no ending"
        raise RequestError(f"a chart's file ends in one of {', '.join(FORMATS)}; {target} has {ending}")
    if not target.parent.is_dir():
        raise RequestError(f"cannot write the chart to {target}: there is no folder {target.parent}")
    try:
        is_new = not target.exists()
        # Only opening the file shows that it can be written: a folder may be full or read-only despite its permissions.
        with target.open("ab"):
            pass
        if is_new:
            target.unlink()
    except OSError as error:
        raise RequestError(f"cannot write the chart to {target}: {error.strerror}") from error
    return target


# vl-convert is imported in the functions that need it: it takes 30 MB and time that --help must not take.


def svg(spec: Spec) -> str:
    """Return a chart as an SVG element, for a page."""

    def draw() -> bytes:
        import vl_convert

        return vl_convert.vegalite_to_svg(make_values_visible(dict(spec)), vl_version=VERSION).encode()

    return load_or_draw(json.dumps(spec), draw).decode()


def png(picture: str) -> bytes:
    """Return an SVG element as a PNG."""

    def draw() -> bytes:
        import vl_convert

        return vl_convert.svg_to_png(picture, scale=PIXELS_PER_UNIT)

    return load_or_draw(f"{PIXELS_PER_UNIT} {picture}", draw)


def runtime() -> str:
    """Return the script that defines `vegaEmbed` in a page, which draws specs without a network."""

    def bundle() -> bytes:
        import vl_convert

        return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VERSION).encode()

    return load_or_draw("window.vegaEmbed", bundle).decode()


def _as_html(spec: dict[str, Any]) -> bytes:
    import vl_convert

    return vl_convert.vegalite_to_html(make_values_visible(spec), vl_version=VERSION, bundle=True).encode()


FORMATS: Mapping[str, Callable[[dict[str, Any]], bytes]] = MappingProxyType({
    ".svg": lambda spec: svg(spec).encode(),
    ".png": lambda spec: png(svg(spec)),
    ".html": _as_html,
    ".json": lambda spec: (json.dumps(spec, indent=2, ensure_ascii=False) + "\n").encode(),
})  # fmt: skip
"""The function that makes the content of a file, by the file's ending."""


def stack(specs: Sequence[Spec], columns: int = 1) -> Spec:
    """Put charts into rows of `columns`; a single chart is returned unchanged."""
    if len(specs) == 1:
        return specs[0]
    inner = [{key: value for key, value in spec.items() if key not in ("$schema", "config")} for spec in specs]
    shared = {"columns": columns, "spacing": 40, "config": specs[0]["config"]}
    return Chart({"$schema": SCHEMA, "concat": inner, **shared})
