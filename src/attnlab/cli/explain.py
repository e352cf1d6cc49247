"""`attnlab explain`: which kernel computes a mechanism, why, what it costs, and what the others refused it for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

import attnlab
from attnlab.cli import plugin
from attnlab.cli.tables import print_json


def print_explanation(
    lines: Annotated[list[str], typer.Argument(metavar="MECHANISM…", help="Lines, or names of the catalog.")],
    length: Annotated[int, typer.Option(min=1, help="How many tokens.")] = 512,
    causal: Annotated[bool, typer.Option(help="Whether a query sees no key after it.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print it for programs to read.")] = False,
    plugins: Annotated[
        list[str] | None, typer.Option("--plugin", metavar="FILE.py", help="Python that registers stages of your own.")
    ] = None,
) -> int:
    """Say which kernel computes a mechanism, why, what it costs, and which kernels refuse it."""
    for path in plugins or []:
        plugin.load_plugin(path)
    # All are explained before the first is printed: a wrong line must not come out after half an answer.
    explanations = {line: attnlab.explain(line, length, causal=causal) for line in lines}
    if not as_json:
        print("\n\n".join(str(explanation) for explanation in explanations.values()))
        return 0
    print_json(
        [
            {
                "asked": line,
                "mechanism": str(explanation.request.mechanism),
                "length": length,
                "causal": causal,
                "kernel": explanation.kernel,
                "reason": explanation.reason,
                "refused": dict(explanation.refused),
                "cost": asdict(explanation.cost),
            }
            for line, explanation in explanations.items()
        ]
    )
    return 0
