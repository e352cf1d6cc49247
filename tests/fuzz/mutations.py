"""Ways to break a valid input: bytes, text, JSON, TOML, and values on the command line."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

NUMBERS = (
    "0", "-1", "1e308", "-1e308", "1e999", "nan", "inf", "-inf", "0.5", "1_000", "0x10", "1e-320", str(2**31),
    str(2**63), str(10**30), "9" * 5000, "٣", "1,5", "1.", ".5", "--", "1e",
)  # fmt: skip
WORDS = (
    "", " ", "none", "true", "[]", "{}", "'", '"', "\\", "\t", "%s", "{x}", "../..", ".", "/", "~nosuchuser",
    "~nosuchuser/x", "a" * 300, "é", "日本", "\U0001f600", "e\u0301", "\u202eabc\u202c", "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07", "\x07", "\x08", "\x7f", "\x9b31m", "\ufeff", "\u200b", "\u2028", "\udcff", "-", "--", "=",
    "a=b", "a.b.c=1", "|", ";", "@", "[bold]", "<script>", "/dev/null", "/dev/zero", "/dev/full", "/etc",
    "/proc/self/mem", "\r", "embedded:", "hf:", "[[", "1,2,3",
)  # fmt: skip
DEEP = ("[" * 10_000, '{"a":' * 10_000, "(" * 3_000, "[" * 300 + "]" * 300)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 10**400, 1e308, float("nan"), float("inf"), 0.5, "", "x",
    "\ud800",     "\x1b[31m", "\u202e", "a" * 300, [], {}, [[]], [None], {"a": None}, [1, "x"], {"": {}}, "~nosuchuser",
)  # fmt: skip


def pick_word(random: Random) -> str:
    """Return a value for the command line, which cannot hold a NUL."""
    kind = random.random()
    if kind < 0.35:
        return random.choice(NUMBERS)
    if kind < 0.85:
        return random.choice(WORDS)
    if kind < 0.9:
        return random.choice(DEEP)
    return "".join(chr(random.choice((random.randrange(1, 128), random.randrange(1, 0xD800)))) for _ in range(8))


def break_line(random: Random, line: str) -> str:
    """Change a short text, such as the line of a mechanism, at one to three places."""
    for _ in range(random.randint(1, 3)):
        start = random.randint(0, len(line))
        end = min(len(line), start + random.choice((0, 0, 1, 1, 2, 5)))
        word, letter = pick_word(random), chr(random.randrange(1, 0x3000))
        piece = random.choice(("", word, line[start:end] * 2, random.choice("|();=@,-0189"), letter))
        line = line[:start] + piece + line[end:]
    return line.replace("\0", "0")


def break_bytes(random: Random, content: bytes) -> bytes:
    """Flip, remove, repeat, insert or cut bytes."""
    broken = bytearray(content)
    for _ in range(random.randint(1, 4)):
        start = random.randrange(len(broken) + 1)
        end = min(len(broken), start + random.choice((1, 1, 4, 16, 64)))
        action = random.randrange(6)
        if action == 0 and start < len(broken):
            broken[start] ^= 1 << random.randrange(8)
        elif action == 1:
            del broken[start:end]
        elif action == 2:
            broken[start:start] = broken[start:end]
        elif action == 3:
            broken[start:start] = pick_word(random).encode("utf-8", "surrogateescape")
        elif action == 4:
            broken[start:end] = random.randbytes(end - start)
        elif random.random() < 0.3:
            del broken[start:]
    return bytes(broken)


def break_text(random: Random, content: bytes) -> bytes:
    """Break a file of lines: its bytes, its numbers, its words or its lines."""
    action = random.randrange(6)
    if action < 2:
        return break_bytes(random, content)
    text = content.decode("utf-8")
    if action == 2:
        text = _replace_one(random, text, r"-?\d+(\.\d+)?", lambda: random.choice(NUMBERS))
    elif action == 3:
        text = _replace_one(random, text, r"[A-Za-z_]+", lambda: random.choice((*WORDS, *DEEP)))
    else:
        lines = text.splitlines(keepends=True)
        chosen = random.randrange(len(lines))
        if action == 4:
            lines[chosen : chosen + 1] = random.choice(([], [lines[chosen]] * 2, [lines[chosen].strip()]))
        else:
            random.shuffle(lines)
        text = "".join(lines)
    return text.encode("utf-8", "surrogatepass")


def break_json(random: Random, content: bytes) -> bytes:
    """Break a JSON file: swap types, remove, repeat or nest values, or break its text."""
    if random.random() < 0.3:
        return break_text(random, content)
    value = json.loads(content)
    for _ in range(random.randint(1, 2)):
        parent, key = random.choice(list(_list_places(value)) or [([value], 0)])
        action = random.randrange(4)
        if action == 0:
            del parent[key]
        elif action == 1:
            parent[key] = [parent[key]] if random.random() < 0.5 else {"a": parent[key]}
        else:
            parent[key] = copy.deepcopy(random.choice(VALUES))  # the next round may change it
    text = json.dumps(value)
    if random.random() < 0.1:
        text = text.replace("null", random.choice(DEEP), 1) if "null" in text else f"[{text}, {'9' * 5000}]"
    return text.encode()


def break_toml(random: Random, content: bytes) -> bytes:
    """Break a TOML file: its values, its keys, or its text."""
    if random.random() < 0.4:
        return break_text(random, content)
    value = random.choice((
        lambda: random.choice(NUMBERS), lambda: json.dumps(random.choice(WORDS)), lambda: random.choice(DEEP),
        lambda: json.dumps(random.choice(VALUES)).replace("null", "{}"), lambda: "[1, [2, [3]]]", lambda: "2020-01-01",
    ))  # fmt: skip
    text = _replace_one(random, content.decode(), r"(?<== ).+", value)
    return text.encode("utf-8", "surrogatepass")


def _replace_one(random: Random, text: str, pattern: str, make: Callable[[], str]) -> str:
    matches = list(re.finditer(pattern, text))
    if not matches:
        return text
    match = random.choice(matches)
    return text[: match.start()] + make() + text[match.end() :]


def _list_places(value: Any) -> Any:
    """Yield every container of a value with each of its keys."""
    stack = [value]
    while stack:
        parent = stack.pop()
        keys = list(parent) if isinstance(parent, dict) else range(len(parent))
        for key in keys:
            yield parent, key
            if isinstance(parent[key], dict | list):
                stack.append(parent[key])
