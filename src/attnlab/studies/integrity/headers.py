"""Column names that say whose values they hold, such as `base_4l_em_9`: which part is the arm, the metric, the seed."""

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
    """How names are made, such as `{arm}_{group}_{metric}_{seed}`, and what each name says."""

    text: str
    meanings: Mapping[str, Mapping[str, str]]


def read_pattern(text: str, names: Sequence[str]) -> Pattern:
    """Read names by a pattern that was given; those it does not fit hold something else."""
    parts = re.findall(r"\{(\w+)\}", text)
    wrong = next((part for part in parts if part not in PARTS), None)
    if wrong is not None or not parts or len(set(parts)) < len(parts):
        raise RequestError(
            f"columns={text}: a pattern is made of {{arm}}, {{group}}, {{metric}} and {{seed}}, each at most once, "
            "such as {arm}_{group}_{metric}_{seed}"
        )
    literal = re.split(r"\{\w+\}", text)
    expression = re.escape(literal[0])
    for part, after in zip(parts, literal[1:], strict=True):
        # The group takes what is left, so that sizes such as 4l_256 need no names for their parts.
        expression += f"(?P<{part}>{'.+' if part == 'group' else '[^_/:. ]+?|.+?'})" + re.escape(after)
    fitting = {name: found.groupdict() for name in names if (found := re.fullmatch(expression, name))}
    if not fitting:
        raise RequestError(f"columns={text} fits no column; there are {', '.join(names[:8])}")
    return Pattern(text, fitting)


def guess_pattern(names: Sequence[str], wanted: Sequence[str]) -> Pattern | None:
    """Find which part of the names is which; None where they are not alike, or say nothing of what is wanted."""
    words = {name: BETWEEN.split(name)[::2] for name in names}
    # Some columns besides, such as wall_time, are made otherwise; most are made alike.
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
    """Give each place in the names its part: seeds are numbers, metrics have known names, an arm is what is left."""
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
