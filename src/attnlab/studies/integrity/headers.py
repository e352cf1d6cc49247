"""Column names such as `base_4l_em_9`: which part is the arm, the group, the metric and the seed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnlab.errors import RequestError

from .metrics import kind_of

PARTS = ("arm", "group", "metric", "seed")
BASELINES = ("baseline", "base", "control", "vanilla", "standard", "reference", "default", "softmax")
SEED = re.compile(r"(seed|run|trial|rep|s|r)?\d+", re.IGNORECASE)
NAMED_SEED = re.compile(r"(seed|run|trial|rep)\d+", re.IGNORECASE)
BETWEEN = re.compile(r"([^A-Za-z0-9]+)")


@dataclass(frozen=True)
class Pattern:
    """The pattern of column names, such as `{arm}_{group}_{metric}_{seed}`, and the parts of each name."""

    text: str
    meanings: Mapping[str, Mapping[str, str]]


def read_pattern(text: str, names: Sequence[str]) -> Pattern:
    """Read names by a given pattern; columns that do not fit are not used."""
    parts = re.findall(r"\{(\w+)\}", text)
    wrong = next((part for part in parts if part not in PARTS), None)
    if wrong is not None or not parts or len(set(parts)) < len(parts):
        raise RequestError(
            f"columns={text}: a pattern consists of {{arm}}, {{group}}, {{metric}} and {{seed}}, each at most once, "
            "such as {arm}_{group}_{metric}_{seed}"
        )
    literal = re.split(r"\{\w+\}", text)
    expression = re.escape(literal[0])
    for part, after in zip(parts, literal[1:], strict=True):
        # A group may contain separators, such as the size 4l_256.
        expression += f"(?P<{part}>{'.+' if part == 'group' else '[^_/:. ]+?|.+?'})" + re.escape(after)
    fitting = {name: found.groupdict() for name in names if (found := re.fullmatch(expression, name))}
    if not fitting:
        raise RequestError(f"columns={text} fits no column; the columns are {', '.join(names[:8])}")
    return Pattern(text, fitting)


def guess_pattern(names: Sequence[str], wanted: Sequence[str]) -> Pattern | None:
    """Find the pattern of most names; None if they have none, or none of the wanted parts."""
    words = {name: BETWEEN.split(name)[::2] for name in names}
    # Some columns, such as wall_time, do not follow the pattern of the others.
    length, count = Counter(len(split) for split in words.values()).most_common(1)[0] if words else (0, 0)
    if count < 2 or 2 * count <= len(names):
        return None
    words = {name: split for name, split in words.items() if len(split) == length}
    columns = list(zip(*words.values(), strict=True))
    roles = _roles(columns, wanted)
    if "arm" in wanted and "arm" not in roles.values():
        return None
    between = BETWEEN.split(next(iter(words)))[1::2]
    meanings: dict[str, dict[str, str]] = {}
    for name, split in words.items():
        said = {part: split[place] for place, part in roles.items() if part != "group"}
        rest = [split[place] for place in range(len(split)) if roles.get(place) == "group"]
        meanings[name] = said | ({"group": "_".join(rest)} if rest else {})
    shown = [f"{{{roles.get(place, 'group')}}}" for place in range(len(columns))]
    text = "".join(part + sign for part, sign in zip(shown, [*between, ""], strict=True))
    return Pattern(re.sub(r"\{group\}([^{]+\{group\})+", "{group}", text), meanings)


def _roles(columns: Sequence[Sequence[str]], wanted: Sequence[str]) -> dict[int, str]:
    """Assign a part to each position: seeds are numbers, metrics have known names, the first of the rest is the arm."""
    roles: dict[int, str] = {}
    varying = [place for place, words in enumerate(columns) if len(set(words)) > 1]
    if "seed" in wanted:
        seeds = [place for place in varying if all(SEED.fullmatch(word) for word in columns[place])]
        named = [place for place in seeds if all(NAMED_SEED.fullmatch(word) for word in columns[place])]
        if seeds:
            roles[(named or seeds)[-1]] = "seed"
    if "metric" in wanted:
        places = [place for place in range(len(columns)) if place not in roles]
        known = [place for place in places if all(kind_of(word) for word in columns[place])]
        if known:
            roles[known[-1]] = "metric"
    if "arm" in wanted:
        left = [place for place in varying if place not in roles]
        known = [place for place in left if any(word.lower() in BASELINES for word in columns[place])]
        if left:
            roles[(known or left)[0]] = "arm"
    for place in range(len(columns)):
        roles.setdefault(place, "group")
    return roles
