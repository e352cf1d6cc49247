"""`attnlab explain`: which kernel computes a mechanism, why, its cost, and why other kernels cannot."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

import attnlab
from attnlab.cli.options import AsJson, Batch, Causal, HeadDim, Heads, Mechanisms, Plugins
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_json

if TYPE_CHECKING:
    from attnlab.kernels.choose import Explanation
    from attnlab.mechanisms import Mechanism

MAX_LENGTH = 10**12
MODULE = "your module in place of attention: no kernel computes it, and its cost is its own"
"""What is said of a mixer."""


def print_explanation(
    lines: Mechanisms,
    length: Annotated[int, typer.Option(min=1, max=MAX_LENGTH, help="The number of tokens.")] = 512,
    causal: Causal = True,
    batch: Batch = 1,
    heads: Heads = 4,
    head_dim: HeadDim = 64,
    as_json: AsJson = False,
    plugins: Plugins = None,
) -> int:
    """Print which kernel computes a mechanism, why, its cost, and why other kernels cannot."""
    load_plugins(plugins)
    # All lines are explained before the first is printed, so that an invalid line prints no partial answer.
    mechanisms = [(line, mechanism) for line in lines for mechanism in attnlab.mechanisms.parse_line(line).distinct]
    explanations = [
        (line, mechanism, _explain(mechanism, length, causal, (batch, heads, head_dim)))
        for line, mechanism in mechanisms
    ]  # fmt: skip
    asked = {"length": length, "causal": causal, "batch": batch, "num_heads": heads, "head_dim": head_dim}
    if as_json:
        print_json([
            {"asked": line, "mechanism": str(mechanism), **asked, **_record(explanation)}
            for line, mechanism, explanation in explanations
        ])  # fmt: skip
    else:
        print("\n\n".join(
            f"{mechanism}\n  module   {MODULE}" if explanation is None else str(explanation)
            for _, mechanism, explanation in explanations
        ))  # fmt: skip
    return 0


def _explain(mechanism: "Mechanism", length: int, causal: bool, sizes: tuple[int, int, int]) -> "Explanation | None":
    """Explain a mechanism; None for a mixer. sizes: batch, heads and the width of a head."""
    if mechanism.mixer is not None:
        return None
    batch, heads, head_dim = sizes
    return attnlab.explain(mechanism, length, causal=causal, batch=batch, num_heads=heads, head_dim=head_dim)


def _record(explanation: "Explanation | None") -> dict[str, Any]:
    if explanation is None:
        return {"kernel": None, "reason": MODULE, "refused": {}, "cost": None, "uncounted": [], "advice": []}
    return {
        "kernel": explanation.kernel, "reason": explanation.reason, "refused": dict(explanation.refused),
        "cost": asdict(explanation.cost), "uncounted": list(explanation.uncounted), "advice": list(explanation.advice),
    }  # fmt: skip
