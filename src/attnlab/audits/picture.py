"""The picture of an audit: a panel for every check that has one."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attnlab.charts import Spec, evidence, soundness
from attnlab.charts.evidence import Bar, Margin
from attnlab.charts.theme import FILE, Theme
from attnlab.errors import RequestError

if TYPE_CHECKING:
    from .finding import Audit, Finding, FindingKind

CHARACTERS = 90
Panel = dict[str, Any]


def draw(audit: Audit, theme: Theme = FILE, only: FindingKind | None = None) -> Spec:
    """Draw the findings of an audit, or only the finding of one kind."""
    findings = [finding for finding in audit.findings.values() if only in (None, finding.kind)]
    by_kind = [(make, finding) for kind, make in PANELS.items() for finding in findings if finding.kind == kind]
    panels = [panel for make, finding in by_kind if (panel := make(finding, theme))]
    differences = [finding for finding in findings if finding.kind in DIFFERENCES]
    margins = [Margin(each.name, each.figure, each.bound) for each in differences if each.bound is not None]
    if margins:
        title = ("Differences that must be 0", "a point right of its mark is above its bound")
        panels.append(evidence.margins(title, margins, theme))
    if not panels:
        raise RequestError(
            f"a figure shows findings of {', '.join([*PANELS, *DIFFERENCES])}; this audit has none of them"
        )
    verdict = "passed" if audit.passed else f"failed: {', '.join(finding.name for finding in audit.failed)}"
    return soundness.draw(audit.subject, textwrap.wrap(verdict, CHARACTERS), panels, theme)


def _draw_leak(finding: Finding, theme: Theme) -> Panel | None:
    return soundness.leak_map(finding.data["map"], theme) if "map" in finding.data else None


def _draw_growth(finding: Finding, theme: Theme) -> Panel | None:
    if "lengths" not in finding.data:
        return None
    sizes = {kind: finding.data[kind] for kind in ("random", "aligned", "one value")}
    return soundness.growth_curves(sizes, finding.data["lengths"], theme)


def _draw_gradients(finding: Finding, theme: Theme) -> Panel | None:
    """Draw the gradients of a mechanism's inputs and parameters; a model has too many."""
    if "none" in finding.data or not finding.parts:
        return None
    rows = [
        Bar(part.name.removeprefix("gradient to "), part.figure, part.note != "")
        for part in finding.parts
        if part.name.startswith("gradient to ") and "left" not in part.name and (part.figure or part.note)
    ]
    return evidence.bars(("Who gets a gradient", "the largest that arrives; what gets 0 cannot learn"), rows, theme)


def _draw_weights(finding: Finding, theme: Theme) -> Panel | None:
    rows = [Bar(name, figure) for name, figure in finding.data.items() if "sum" not in name]
    return evidence.bars(("What the weights are like", "shares, on random tokens"), rows, theme) if rows else None


def _draw_value_path(finding: Finding, theme: Theme) -> Panel:
    rows = [
        Bar(f"width {width}, {when}", moments[when], when == "after")
        for widths in finding.data.values()
        for width, moments in widths.items()
        for when in ("before", "after")
    ]
    return evidence.bars(("Variance on the value path", "at initialisation; orange is after the stage"), rows, theme)


def _draw_random_tokens(finding: Finding, theme: Theme) -> Panel | None:
    data = finding.data
    if "loss" not in data:
        return None
    rows = [Bar("whole sequence", data["loss"], not finding.passed), Bar("prefix alone", data["prefix_loss"])]
    title = ("Loss on random tokens, nats", "without a leak, no model gets below the dashed line")
    return evidence.bars(title, rows, theme, (data["floor"], "ln V"))


PANELS: dict[FindingKind, Callable[[Finding, Theme], Panel | None]] = {
    "leak": _draw_leak, "magnitude": _draw_growth, "gradients": _draw_gradients, "weights": _draw_weights,
    "value_path": _draw_value_path, "random_tokens": _draw_random_tokens,
}  # fmt: skip
"""The checks that have a panel."""

DIFFERENCES: tuple[FindingKind, ...] = ("prefix", "padding", "numerics", "equivalences")
"""The checks that share a panel: each measures a difference and compares it with a bound."""
