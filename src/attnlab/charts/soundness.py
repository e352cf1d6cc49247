"""Panels of an audit: the leak map, and the growth of the output with the length."""

import math
from collections.abc import Mapping, Sequence

from .axis import Axis
from .chart import Spec
from .evidence import make_panel
from .growth import draw_guides, encode_length
from .theme import FILE, GREEN, PURPLE, Layer, Theme, frame, layer, nominal, quantitative

FAINTEST = 1e-6
"""The palest dependence, as a share of the strongest one; a dependence of exactly 0 is not drawn."""

GUIDES = {"√n": 0.5, "n": 1.0}


def draw(title: str, subtitle: Sequence[str], panels: Sequence[Layer], theme: Theme = FILE) -> Spec:
    """Draw panels of an audit under one title, two per row."""
    resolve = {"scale": {"color": "independent"}}
    return frame(title, subtitle, theme, concat=list(panels), columns=2, resolve=resolve)


def leak_map(leaks: Sequence[Sequence[float]], theme: Theme) -> Layer:
    """Draw how strongly output i (row) depends on token j (column); dependence on later tokens is orange."""
    num_tokens = len(leaks)
    strongest = max((abs(size) for row in leaks for size in row), default=0) or 1.0
    values: list[Layer] = [
        {
            "output": i, "below": i + 1, "token": j, "right": j + 1, "dependence": size,
            "whose": "later token: a leak" if j > i else "allowed",
            "strength": 1 + max(math.log10(abs(size) / strongest), -6) / 6 * 0.85,
        }
        for i, row in enumerate(leaks)
        for j, size in enumerate(row)
        if abs(size) > FAINTEST**2 * strongest
    ]  # fmt: skip
    scale = {"domain": ["allowed", "later token: a leak"], "range": [theme.blue, theme.orange]}
    has_leak = any(value["token"] > value["output"] for value in values)
    subtitle = "orange: an output that depends on a later token" if has_leak else "no output depends on a later token"
    encoding = {
        "x": _tokens("token", "token that is changed", num_tokens), "x2": {"field": "right"},
        "y": _tokens("output", "output that is observed", num_tokens), "y2": {"field": "below"},
        "fill": nominal("whose", scale=scale, legend=None), "fillOpacity": quantitative("strength", scale=None),
        "tooltip": [quantitative("output"), quantitative("token"), quantitative("dependence", format=".2e")],
    }  # fmt: skip
    mark = {"type": "rect", "stroke": theme.background, "strokeWidth": 0.5, "aria": False}
    return make_panel(("Who depends on whom", subtitle), data={"values": values}, mark=mark, encoding=encoding)


def _tokens(field: str, title: str, num_tokens: int) -> Layer:
    places = [i + 0.5 for i in range(0, num_tokens, max(1, math.ceil(num_tokens / 8)))]
    labels = {"values": places, "labelExpr": "floor(datum.value)", "title": title}
    scale = {"domain": [0, num_tokens], "nice": False, "reverse": field == "output"}
    return quantitative(field, scale=scale, axis={**labels, "grid": False, "domain": False, "ticks": False})


def growth_curves(growth: Mapping[str, Sequence[float]], lengths: Sequence[int], theme: Theme) -> Layer:
    """Draw the size of the output by kind of token against the length."""
    values: list[Layer] = [
        {"kind": kind, "length": length, "size": size}
        for kind, sizes in growth.items()
        for length, size in zip(lengths, sizes, strict=True)
        if size > 0 and math.isfinite(size)
    ]
    axis = _fit_axis([value["size"] for value in values])
    kinds = list(dict.fromkeys(value["kind"] for value in values))
    colour = nominal("kind", title=None, scale={"domain": kinds, "range": [theme.blue, GREEN, PURPLE][: len(kinds)]})
    tooltip = [nominal("kind"), quantitative("length"), quantitative("size", format=".3~r")]
    layers = [
        *draw_guides(GUIDES, lengths, "size", axis, theme),
        layer(values, "line", {"color": colour}, strokeWidth=2),
        layer(values, "point", {"color": colour, "tooltip": tooltip}, filled=True, size=45, opacity=1),
    ]
    title = ("Growth with the length", "constant is sound; the thin lines grow as √n and n")
    encoding = {"x": encode_length(lengths), "y": axis.encode_up("size", "size of the output")}
    return make_panel(title, encoding=encoding, layer=layers)


def _fit_axis(sizes: Sequence[float]) -> Axis:
    """Return an axis of at least two powers of ten around the sizes, so that constant sizes look constant."""
    if not sizes:
        return Axis(0.1, 10.0, is_logarithmic=True)
    low, high = math.log10(min(sizes)), math.log10(max(sizes))
    missing = max(0.0, 2.2 - (high - low)) / 2 + 0.1
    return Axis(10 ** (low - missing), 10 ** (high + missing), is_logarithmic=True)
