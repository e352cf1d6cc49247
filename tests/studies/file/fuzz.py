"""Study files that nobody should write: a valid one with values, keys or bytes changed at random, and plain rubbish."""

from __future__ import annotations

import json
import random
import tomllib
from typing import Any

from ..samples import STUDY

SCRAPS = (
    "nan", "inf", "-inf", "1e999", "-1", "0", "1e308", "9" * 30, "0x" + "f" * 4000, "9" * 5000, "true", '""', '"x"',
    "[]", "{}", "[1, 2]", "[[1]]", "[" * 60 + "]" * 60, "{ a = { b = { c = 1 } } }", "1979-05-27", "07:32:00",
    "1979-05-27T07:32:00Z", '"\\u0000"', '"\\u2028"', '"' + "a" * 5000 + '"', "'''\n[x]\n'''", '"dot | softmx"',
    '"²"', '"../.."', '"embedded:nothing"', "[1, 1]", '{ mechanism = "dot | softmax", set = { "phases.x" = 1 } }',
)  # fmt: skip
LINES = (
    "seeds = [1]", "[arms]", "[[phases]]", "[phases]", "[budgets.smoke]", "[budgets]", "budgets = 3", "unknown = 1",
    '"" = 1', "a.b.c = 1", "[a.b]", "name = ", "= 3", "]", "[", '"""', "\ufeff", "\x00", '"phases.recall.²" = 1',
    '"phases.recall.segments.99999999999999999999" = 1', '"....." = 1', "x = " + "[" * 3000, "a." * 900 + "a = 1",
    "a." * 5000 + "a = 1",
)  # fmt: skip


def written(value: Any) -> str:
    """Write plain data as TOML, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {written(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return value.scrap if isinstance(value, Scrap) else json.dumps(value)


class Scrap:
    """A value that is written as it stands."""

    def __init__(self, scrap: str) -> None:
        self.scrap = scrap


def places(value: Any) -> list[tuple[Any, Any]]:
    """List every table and list of plain data with each of its keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, own in inner for place in [(value, key), *places(own)]]


def with_other_values(draw: random.Random) -> str:
    """Change values and keys of the valid study."""
    found = tomllib.loads(STUDY)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        place, key = draw.choice(places(found))
        if draw.random() < 0.15:
            del place[key]
        elif draw.random() < 0.3 and isinstance(place, dict):
            place[str(key) + draw.choice(("s", "_", " ", "²", ".x"))] = place.pop(key)
        elif draw.random() < 0.2 and isinstance(place, dict):
            place[draw.choice(("lr", "set", "unknown", "steps", "name"))] = Scrap(draw.choice(SCRAPS))
        else:
            place[key] = Scrap(draw.choice(SCRAPS))
    return "".join(f"{json.dumps(name)} = {written(value)}\n" for name, value in found.items())


def with_other_lines(draw: random.Random) -> str:
    """Put lines in, take some out, double and shuffle some."""
    lines = STUDY.split("\n")
    for _ in range(draw.choice((1, 1, 2, 4))):
        lines = lines or [""]
        at = draw.randrange(len(lines))
        kind = draw.randrange(5)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[draw.randrange(len(lines))])
        elif kind == 2:
            lines.insert(at, draw.choice(LINES))
        elif kind == 3:
            lines[at] = lines[at].partition("=")[0] + "= " + draw.choice(SCRAPS)
        else:
            lines = lines[:at]
            lines.append("")
    return "\n".join(lines)


def with_other_bytes(draw: random.Random) -> bytes:
    """Flip bits of some bytes."""
    found = bytearray(STUDY.encode())
    for _ in range(draw.choice((1, 2, 8, 50))):
        found[draw.randrange(len(found))] ^= 1 << draw.randrange(8)
    return bytes(found)


def rubbish(draw: random.Random) -> bytes:
    """Make something that is no study file at all."""
    kinds = (
        b"",
        b"\n" * 9,
        draw.randbytes(draw.randrange(1, 3000)),
        b"PK\x03\x04" + draw.randbytes(99),
        b"{}",
        b"\xff",
    )
    deep = ("a = " + "[" * draw.randrange(1, 5000)).encode(), b"[a" + b".a" * draw.randrange(1, 2000) + b"]"
    return draw.choice((*kinds, *deep, b"x" * (2**17 + 1), STUDY.encode("utf-16")))


def make(seed: int) -> bytes:
    """Make a study file of a seed."""
    draw = random.Random(seed)
    made = draw.choice((with_other_values, with_other_values, with_other_lines, with_other_bytes, rubbish))(draw)
    return made.encode() if isinstance(made, str) else made
