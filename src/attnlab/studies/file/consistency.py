"""Consistency of a study whose single values may all be valid: unknown names, duplicates; and its choice of arms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.errors import closest

Misfit = tuple[tuple[str | int, ...], str]
"""The path of a value, and what is wrong with it."""

SETTABLE = ("segments", "optimizer", "schedule", "tuning", "task_settings", "clip", "precision", "data", "config")
"""What an arm may set of a phase; all arms have the rest in common."""
WHOLE = ("clip", "precision", "data")
"""Those that are not tables."""
EXAMPLES = {
    "segments": "0.batch", "optimizer": "lr", "schedule": "warmup", "tuning": "rank", "task_settings": "max_len",
    "config": "n_layer",
}  # fmt: skip
"""A setting of each that is a table."""


def find_misfits(content: Mapping[str, Any]) -> list[Misfit]:
    """List what is inconsistent in plain data that may hold anything."""
    arms, phases = content.get("arms"), content.get("phases")
    entries = [phase if isinstance(phase, dict) else {} for phase in phases] if isinstance(phases, list) else []
    misfits = [*_check_phases(entries), *check_choices(content)]
    seeds = content.get("seeds")
    if isinstance(seeds, list):
        counts = Counter(seed for seed in seeds if isinstance(seed, int) and 0 <= seed < 2**31)
        misfits += [(("seeds",), f"seed {seed} stands twice") for seed, number in counts.items() if number > 1]
    if isinstance(arms, dict):
        baseline = content.get("baseline")
        if isinstance(baseline, str) and baseline not in arms:
            hint = closest(baseline, arms) or "."
            known = ", ".join(map(str, list(arms)[:10]))
            misfits.append((("baseline",), f"no arm is called '{baseline[:60]}'{hint} The arms are {known}"))
        for name, arm in arms.items():
            if isinstance(arm, dict):
                misfits += [
                    (("arms", name, "by_size", size), why) for size, why in _check_sizes(arm, content.get("sizes"))
                ]
            if isinstance(arm, dict) and isinstance(arm.get("set"), dict):
                misfits += [(("arms", name, "set", where), why) for where, why in _check_settings(arm["set"], entries)]
    return misfits


def _check_phases(phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    """Find duplicate names, and phases that start from a phase that is missing or has no weights to start from."""
    before: dict[str, dict[str, Any]] = {}
    for number, phase in enumerate(phases):
        name, after = phase.get("name"), phase.get("after")
        if isinstance(after, str) and after not in before:
            hint = closest(after, before) or "."
            yield ("phases", number, "after"), f"no phase before this one is called '{after[:60]}'{hint}"
        elif isinstance(after, str) and (mode := _get_mode(before[after])) != "full":
            why = f"'{after}' tunes a '{mode}' alone, whose weights no other phase can start from"
            yield ("phases", number, "after"), f"{why}; start both from the phase before it"
        if phase.get("is_shared") is True and phase.get("smallest") is not None:
            why = "a phase that is shared has one seed, which cannot be compared; leave smallest or is_shared out"
            yield ("phases", number, "smallest"), why
        if isinstance(name, str):
            if name in before:
                yield ("phases", number, "name"), f"two phases are called '{name[:60]}'"
            before[name] = phase


def _get_mode(phase: Mapping[str, Any]) -> Any:
    tuning = phase.get("tuning")
    return tuning.get("mode", "full") if isinstance(tuning, dict) else "full"


def check_choices(content: Mapping[str, Any]) -> Iterator[Misfit]:
    """Find names in `only_arms` and `only_sizes` that the study does not have."""
    for what in ("arms", "sizes"):
        wanted, entries = content.get(f"only_{what}"), content.get(what)
        if isinstance(wanted, list) and isinstance(entries, dict):
            for name in wanted:
                if isinstance(name, str) and name not in entries:
                    yield (
                        (f"only_{what}",),
                        f"none of the {what} is called '{name[:60]}'{closest(name, entries) or '.'}",
                    )


def _check_sizes(arm: Mapping[str, Any], sizes: Any) -> Iterator[tuple[str, str]]:
    lines = arm.get("by_size")
    if isinstance(lines, dict) and isinstance(sizes, dict):
        for size in map(str, lines):
            if size not in sizes:
                yield size, f"no size is called '{size[:60]}'{closest(size, sizes) or '.'}"


def _check_settings(settings: Mapping[Any, Any], phases: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Find settings of an arm that are of no phase, or that an arm cannot set."""
    names = [phase["name"] for phase in phases if isinstance(phase.get("name"), str)]
    for where in settings:
        if not isinstance(where, str):
            continue
        name, setting = split_address(where, names)
        if name is not None and name not in names:
            yield where, f"no phase is called '{name[:60]}'{closest(name, names) or '.'}"
        elif setting.split(".")[0] not in SETTABLE:
            hint = closest(setting.split(".")[0], SETTABLE) or "."
            yield where, f"an arm cannot set '{(setting or where)[:60]}'{hint} It sets {', '.join(SETTABLE)}"
        elif setting in SETTABLE and setting not in WHOLE:
            yield where, f"give a setting inside '{setting}', such as '{setting}.{EXAMPLES[setting]}'"
        elif name is not None and setting.startswith("config."):
            yield where, f"all phases have the same model; give '{setting}' alone"


def split_address(where: str, names: list[str]) -> tuple[str | None, str]:
    """Split `phases.NAME.setting` into the phase and the setting; the phase is None if it is for all."""
    if not where.startswith("phases."):
        return None, where
    rest = where.removeprefix("phases.")
    known = [name for name in names if rest.startswith(f"{name}.")]
    name = max(known, key=len) if known else rest.partition(".")[0]
    return name, rest.removeprefix(name).removeprefix(".")


def choose_entries(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study as plain data, which may hold anything, with the arms and sizes it chooses."""
    chosen = dict(content)
    for what in ("arms", "sizes"):
        wanted, entries = chosen.get(f"only_{what}"), chosen.get(what)
        if isinstance(wanted, list) and isinstance(entries, dict):
            chosen[what] = {name: entries[name] for name in entries if name in wanted}
    arms, sizes, before = chosen.get("arms"), chosen.get("sizes"), content.get("sizes")
    if isinstance(arms, dict) and isinstance(sizes, dict) and isinstance(before, dict):
        chosen["arms"] = {name: _drop_lines(arm, set(before) - set(sizes)) for name, arm in arms.items()}
    return chosen


def _drop_lines(arm: Any, left_out: set[str]) -> Any:
    lines = arm.get("by_size") if isinstance(arm, dict) else None
    if not isinstance(lines, dict):
        return arm
    return {**arm, "by_size": {size: line for size, line in lines.items() if size not in left_out}}
