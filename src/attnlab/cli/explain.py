"""`attnlab explain`: which kernel computes a mechanism, why, its cost, and why other kernels cannot."""

from dataclasses import asdict
from typing import Annotated

import typer

import attnlab
from attnlab.cli.options import AsJson, Causal, Mechanisms, Plugins
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_json

MAX_LENGTH = 10**12


def print_explanation(
    lines: Mechanisms,
    length: Annotated[int, typer.Option(min=1, max=MAX_LENGTH, help="The number of tokens.")] = 512,
    causal: Causal = True,
    as_json: AsJson = False,
    plugins: Plugins = None,
) -> int:
    """Print which kernel computes a mechanism, why, its cost, and why other kernels cannot."""
    load_plugins(plugins)
    # All lines are explained before the first is printed, so that an invalid line prints no partial answer.
    mechanisms = [(line, mechanism) for line in lines for mechanism in attnlab.mechanisms.parse_line(line).distinct]
    explanations = [(line, attnlab.explain(mechanism, length, causal=causal)) for line, mechanism in mechanisms]
    if not as_json:
        print("\n\n".join(str(explanation) for _, explanation in explanations))
        return 0
    print_json([
        {
            "asked": line, "mechanism": str(explanation.request.mechanism), "length": length, "causal": causal,
            "kernel": explanation.kernel, "reason": explanation.reason, "refused": dict(explanation.refused),
            "cost": asdict(explanation.cost), "advice": list(explanation.advice),
        }
        for line, explanation in explanations
    ])  # fmt: skip
    return 0
