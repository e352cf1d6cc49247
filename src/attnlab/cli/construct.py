"""`attnlab construct`: queries and keys with which attention selects, averages or extracts, or a proof of none."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.cli.constructions import make_record, print_construction
from attnlab.cli.numbers import read_file, read_indices, read_vector
from attnlab.cli.options import AsJson, FigureFile
from attnlab.cli.tables import print_json
from attnlab.errors import RequestError, closest

if TYPE_CHECKING:
    from attnlab.cli.constructions import Result

ABOUT_KEYS = ("keys", "values", "scale")
NEEDS: Mapping[str, tuple[str, ...]] = {
    "select": ("index",), "select-all": (), "average": (), "strength": ("n", "head-dim", "weight"),
    "extract": ("basis",), "argmax": ("query",), "place-key": ("query",),
}  # fmt: skip
"""The required options of each construction."""
TAKES: Mapping[str, tuple[str, ...]] = {
    "select": (*ABOUT_KEYS, "tolerance"), "select-all": (*ABOUT_KEYS, "tolerance"),
    "average": (*ABOUT_KEYS, "tolerance", "subset"), "strength": (), "extract": ("other",), "argmax": ABOUT_KEYS,
    "place-key": (*ABOUT_KEYS, "tolerance", "subset", "goal", "norm"),
}  # fmt: skip
"""The optional ones."""
WHAT_HELP = f"One of {', '.join(NEEDS)}; extract takes one value out of a superposition."
SAMPLES: Mapping[str, str] = {
    "index": "0", "n": "10", "head-dim": "64", "weight": "0.45", "basis": "basis.json", "query": "1,0.5,-2",
}  # fmt: skip


def construct(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=WHAT_HELP)],
    keys: Annotated[str | None, typer.Option(metavar="FILE", help="Keys, one per row: .json or .csv.")] = None,
    values: Annotated[str | None, typer.Option(metavar="FILE", help="Values, one row per key.")] = None,
    index: Annotated[int | None, typer.Option(help="The index of the key to select, from 0.")] = None,
    subset: Annotated[str | None, typer.Option(metavar="0,1", help="The keys to average; default: all.")] = None,
    query: Annotated[str | None, typer.Option(metavar="1,0,…|FILE", help="The query of argmax and place-key.")] = None,
    goal: Annotated[str | None, typer.Option(metavar="average|select", help="The goal of place-key.")] = None,
    norm: Annotated[float | None, typer.Option(help="The norm of a key placed to be selected; default: 1.")] = None,
    scale: Annotated[float | None, typer.Option(help="The factor of q·k; default: 1/√d.")] = None,
    tolerance: Annotated[float | None, typer.Option(help="The largest error; default: 0.01.")] = None,
    n: Annotated[int | None, typer.Option("--n", help="The number of orthonormal keys, for strength.")] = None,
    head_dim: Annotated[int | None, typer.Option(help="The width of a head, for strength.")] = None,
    weight: Annotated[float | None, typer.Option(help="The weight of each of two keys, for strength.")] = None,
    basis: Annotated[str | None, typer.Option(metavar="FILE", help="Columns that span v_a's subspace.")] = None,
    other: Annotated[
        str | None, typer.Option(metavar="FILE", help="Columns that span v_b's subspace, or those of all others.")
    ] = None,
    figure: FigureFile = None,
    as_json: AsJson = False,
) -> int:
    """Find queries and keys that select, average or extract, or prove that there are none."""
    options = {
        "keys": keys, "values": values, "index": index, "subset": subset, "query": query, "goal": goal, "norm": norm,
        "scale": scale, "tolerance": tolerance, "n": n, "head-dim": head_dim, "weight": weight, "basis": basis,
        "other": other,
    }  # fmt: skip
    given = {name: value for name, value in options.items() if value is not None}
    _check_options(what, given)
    from attnlab import charts

    if figure is not None:
        charts.check(figure)
    result = _build_construction(what, given)
    if as_json:
        print_json({"construction": what, **make_record(result)})
    else:
        if "keys" in TAKES[what] and keys is None:
            print("keys: the four of the documentation's examples; --keys FILE.json takes your own")
        print_construction(result)
    if figure is not None:
        charts.save(result.figure(), figure)
        print(f"drawn in {figure}", file=sys.stderr)
    return 0 if getattr(result, "feasible", True) else 1


def _check_options(what: str, given: Mapping[str, Any]) -> None:
    if what.lower() == "superposition":
        raise RequestError(
            "there is no construction 'superposition'; extract takes one value out of a sum of several: attnlab "
            "construct extract --basis basis.json --other other.json"
        )
    if what not in NEEDS:
        raise RequestError(
            f"there is no construction '{what}'{closest(what, NEEDS) or '; there is ' + ', '.join(NEEDS)}"
        )
    for name in NEEDS[what]:
        if name not in given:
            needed = " ".join(f"--{need} {SAMPLES[need]}" for need in NEEDS[what])
            raise RequestError(f"{what} needs --{name}; for example: attnlab construct {what} {needed}")
    allowed = (*NEEDS[what], *TAKES[what])
    for name in given:
        if name not in allowed:
            takes = ", ".join(f"--{option}" for option in allowed)
            hint = "; --subset 0,1 names its keys" if name == "index" and "subset" in allowed else ""
            raise RequestError(f"--{name} does not belong to {what}, which takes {takes}{hint}")


def _build_construction(what: str, given: Mapping[str, Any]) -> "Result":
    from attnlab import construct as room

    if what == "strength":
        return room.strength(given["n"], given["head-dim"], given["weight"])
    if what == "extract":
        other = read_file("--other", given["other"]) if "other" in given else None
        return room.extract(read_file("--basis", given["basis"]), other)
    keys = read_file("--keys", given["keys"]) if "keys" in given else room.EXAMPLE_KEYS
    settings = {name: given[name] for name in ("scale", "tolerance", "goal", "norm") if name in given}
    if "values" in given:
        settings["values"] = read_file("--values", given["values"])
    if "subset" in given:
        settings["subset"] = read_indices("--subset", given["subset"])
    if what == "select":
        return room.select(keys, given["index"], **settings)
    if what == "select-all":
        return room.select_all(keys, **settings)
    if what == "average":
        return room.average(keys, **settings)
    query = read_vector("--query", given["query"])
    return room.argmax(keys, query, **settings) if what == "argmax" else room.place_key(keys, query, **settings)
