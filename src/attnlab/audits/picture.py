"""The picture of an audit: a panel for every check that has one."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

from attnlab.charts import Spec, evidence, soundness
from attnlab.charts.evidence import Bar, Margin
from attnlab.charts.theme import FILE, Theme
from attnlab.errors import RequestError

from .finding import Audit, Finding, FindingKind

CHARACTERS = 90
Panel = dict[str, Any]


def draw(audit: Audit, theme: Theme = FILE, only: FindingKind | None = None) -> Spec:
    """Draw what the audit saw; or only the finding of one kind."""
    found = [finding for finding in audit.findings.values() if only in (None, finding.kind)]
    by_kind = [(make, finding) for kind, make in PANELS.items() for finding in found if finding.kind == kind]
    panels = [panel for make, finding in by_kind if (panel := make(finding, theme))]
    differences = [finding for finding in found if finding.kind in DIFFERENCES and finding.bound is not None]
    if differences:
        rows = [Margin(one.name, one.figure, one.bound) for one in differences if one.bound is not None]
        title = ("Differences that must be nothing", "a point right of its mark is more than is allowed")
        panels.append(evidence.margins(title, rows, theme))
    if not panels:
        raise RequestError(
            f"a figure shows findings of {', '.join([*PANELS, *DIFFERENCES])}; this audit has none of them"
        )
    verdict = "passed" if audit.passed else f"failed: {', '.join(finding.name for finding in audit.failed)}"
    return soundness.draw(audit.subject, textwrap.wrap(verdict, CHARACTERS), panels, theme)


def leak_panel(finding: Finding, theme: Theme) -> Panel | None:
    """Draw the leak map, where there is one."""
    return soundness.leak_map(finding.data["map"], theme) if "map" in finding.data else None


def growth_panel(finding: Finding, theme: Theme) -> Panel | None:
    """Draw the size of the output against the length, if it was measured."""
    if "lengths" not in finding.data:
        return None
    sizes = {kind: finding.data[kind] for kind in ("random", "aligned", "one value")}
    return soundness.growth_curves(sizes, finding.data["lengths"], theme)


def gradient_panel(finding: Finding, theme: Theme) -> Panel | None:
    """Draw the gradients of a mechanism's inputs and parameters; a model has too many."""
    rows = [
        Bar(part.name.removeprefix("gradient to "), part.figure, part.note != "")
        for part in finding.parts
        if part.name.startswith("gradient to ") and "left" not in part.name and (part.figure or part.note)
    ]
    if "none" in finding.data:
        return None
    return evidence.bars(("Who gets a gradient", "the largest that arrives; what gets 0 cannot learn"), rows, theme)


def weights_panel(finding: Finding, theme: Theme) -> Panel | None:
    """Draw the shares that describe the weights."""
    rows = [Bar(name, figure) for name, figure in finding.data.items() if "sum" not in name]
    return evidence.bars(("What the weights are like", "shares, on random tokens"), rows, theme) if rows else None


def value_panel(finding: Finding, theme: Theme) -> Panel:
    """Draw the variance before and after each stage of the value path, by width."""
    rows = [
        Bar(f"width {width}, {when}", moments[when], when == "after")
        for widths in finding.data.values()
        for width, moments in widths.items()
        for when in ("before", "after")
    ]
    return evidence.bars(("Variance on the value path", "at initialisation; orange is after the stage"), rows, theme)


def random_tokens_panel(finding: Finding, theme: Theme) -> Panel | None:
    """Draw the loss on random tokens beside the least there can be, if it was measured."""
    if "loss" not in finding.data:
        return None
    rows = [
        Bar("whole sequence there", finding.data["loss"], not finding.passed),
        Bar("prefix alone", finding.data["prefix_loss"]),
    ]
    title = ("Loss on random tokens, nats", "no honest model gets below the dashed line")
    return evidence.bars(title, rows, theme, (finding.data["floor"], "ln V"))


PANELS: dict[FindingKind, Callable[[Finding, Theme], Panel | None]] = {
    "leak": leak_panel,
    "magnitude": growth_panel,
    "gradients": gradient_panel,
    "weights": weights_panel,
    "value_path": value_panel,
    "random_tokens": random_tokens_panel,
}
"""The checks with a panel of their own."""

DIFFERENCES: tuple[FindingKind, ...] = ("prefix", "padding", "numerics", "equivalences")
"""The checks that share a panel: each measures a difference against what is allowed."""
