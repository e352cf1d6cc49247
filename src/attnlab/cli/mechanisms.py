"""`attnlab mechanisms`: the catalog with lines and papers, or the stages of which lines are made."""

import dataclasses
from typing import Annotated, Any

import typer

import attnlab
from attnlab.cli import catalog
from attnlab.cli.docstrings import read_first_sentence
from attnlab.cli.options import AsJson, Plugins
from attnlab.cli.plugin import load_plugins
from attnlab.cli.tables import print_entries, print_json


def print_catalog(
    stages: Annotated[bool, typer.Option("--stages", help="List the stages of a line instead.")] = False,
    page: Annotated[str, typer.Option(metavar="DIR", help="Compute, check and time all, and write a page.")] = "",
    plugins: Plugins = None,
    as_json: AsJson = False,
) -> int:
    """Print the named mechanisms, each with its line and its paper; or every stage with its arguments, also if
    --plugin adds your own."""
    load_plugins(plugins)
    if page:
        return catalog.print_catalog_results(page)
    if stages or plugins:
        _print_stages(as_json)
        return 0
    entries = list(attnlab.mechanisms.CATALOG.values())
    if as_json:
        names = ("name", "slot", "line", "paper", "sentence", "specimen")
        print_json([{name: getattr(entry, name) for name in names} for entry in entries])
        return 0
    slots = [*attnlab.mechanisms.SLOTS, "layers"]
    rows = [
        (entry.name, entry.line, entry.slot, entry.paper, f"{'Specimen: ' if entry.specimen else ''}{entry.sentence}")
        for entry in sorted(entries, key=lambda entry: slots.index(entry.slot))
    ]
    print_entries(("name", "line", "slot", "paper", "what it is"), rows)
    return 0


def _print_stages(as_json: bool) -> None:
    registered = attnlab.mechanisms.REGISTRY.values()
    slots = attnlab.mechanisms.SLOTS
    stages = [_make_stage_record(stage) for slot in slots for stage in registered if stage.slot == slot]
    if as_json:
        print_json(stages)
        return
    rows = [(stage["name"], stage["slot"], _show_arguments(stage["arguments"]), stage["sentence"]) for stage in stages]
    print_entries(("stage", "slot", "arguments", "what it is"), rows)


def _make_stage_record(stage: "type[attnlab.mechanisms.Stage]") -> dict[str, Any]:
    from attnlab.mechanisms.arguments import argument_types, describe, write
    from attnlab.mechanisms.stage import name_argument

    types = argument_types(stage)
    arguments = [
        {
            "name": name_argument(item.name),
            "default": None if item.default is dataclasses.MISSING else write(item.default),
            "may_be": describe(types[item.name]),
        }
        for item in dataclasses.fields(stage)
    ]
    sentence = read_first_sentence(stage)
    return {"name": stage.name, "slot": stage.slot, "arguments": arguments, "sentence": sentence}


def _show_arguments(arguments: list[dict[str, Any]]) -> str:
    parts = [item["name"] if item["default"] is None else f"{item['name']}={item['default']}" for item in arguments]
    return ", ".join(parts) or "none"
