"""Arm and seed in the name of a run or a file, such as `cosine-seed3`, `base_s1` or `gpt2/run-2`."""

import re
from collections.abc import Sequence

NAMED = re.compile(r"(?:^|[-_/ .,(=])seed[-_= ]?(\d+)(?=$|[-_/ .,)])", re.IGNORECASE)
AT_THE_END = re.compile(r"[-_/ .](?:run|trial|rep|fold|s|r)[-_= ]?(\d+)$", re.IGNORECASE)
NUMBER = re.compile(r"[-_/ .#]+(\d+)$")


def split_run_names(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return arm and seed of each name; empty if the names do not show seeds.

    A number at the end is a seed only if several names share what comes before it.
    """
    distinct = list(dict.fromkeys(names))
    for pattern in (NAMED, AT_THE_END, NUMBER):
        found = {name: _split(name, pattern) for name in distinct}
        pairs = [pair for pair in found.values() if pair is not None]
        arms = {arm for arm, _ in pairs}
        if len(pairs) < len(distinct) or not pairs or len(set(pairs)) < len(pairs):
            continue
        if pattern is NAMED or 2 * len(arms) <= len(pairs):
            return {name: pair for name, pair in found.items() if pair is not None}
    return {}


def _split(name: str, pattern: re.Pattern[str]) -> tuple[str, str] | None:
    match = pattern.search(name)
    if match is None:
        return None
    before, after = name[: match.start()].rstrip("-_/ .,(="), name[match.end() :].lstrip("-_/ .,)=")
    return "-".join(filter(None, (before, after))) or "all", match[1]
