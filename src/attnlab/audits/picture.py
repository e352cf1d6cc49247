"""The picture of an audit: its leak map and its growth curves, whichever it has."""

from __future__ import annotations

import textwrap

from attnlab.charts import Spec
from attnlab.charts.soundness import draw as draw_panels
from attnlab.errors import RequestError

from .finding import Audit

LEAK, GROWTH = "causal leak", "magnitude against length"
CHARACTERS = 100


def draw(audit: Audit) -> Spec:
    """Draw what the audit saw."""
    leak, growth = audit.findings.get(LEAK), audit.findings.get(GROWTH)
    leaks = leak.data.get("map") if leak is not None else None
    if leaks is None and growth is None:
        raise RequestError(
            f"a figure shows '{LEAK}' and '{GROWTH}', and this audit has neither; causal=True gives the first, "
            "a mechanism the second"
        )
    verdict = "passed" if audit.passed else f"failed: {', '.join(finding.name for finding in audit.failed)}"
    sizes = {kind: growth.data[kind] for kind in ("random", "aligned")} if growth is not None else None
    lengths = growth.data["lengths"] if growth is not None else ()
    return draw_panels(audit.subject, textwrap.wrap(verdict, CHARACTERS), leaks, sizes, lengths)
