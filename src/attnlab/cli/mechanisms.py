"""`attnlab mechanisms`: the catalog, one named mechanism a row, with its line and its paper."""

from typing import Annotated

import typer

import attnlab
from attnlab.cli.tables import print_json, print_table


def print_catalog(
    as_json: Annotated[bool, typer.Option("--json", help="Print the catalog for programs to read.")] = False,
) -> int:
    """Print the named mechanisms, each with the line that writes it and its paper."""
    entries = list(attnlab.mechanisms.CATALOG.values())
    if as_json:
        print_json(
            [
                {
                    "name": entry.name,
                    "line": entry.line,
                    "paper": entry.paper,
                    "sentence": entry.sentence,
                    "specimen": entry.specimen,
                }
                for entry in entries
            ]
        )
        return 0
    rows = [
        (entry.name, entry.line, entry.paper, f"{'Specimen: ' if entry.specimen else ''}{entry.sentence}")
        for entry in entries
    ]
    print_table(("name", "line", "paper", "what it is"), rows)
    return 0
