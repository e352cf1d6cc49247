"""Consistency of a study whose single values may all be valid: unknown names, duplicates; and its choice of arms."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.errors import closest

from .addresses import SETTABLE, Misfit, list_phase_names, report_unknown, split_address
from .joint_consistency import check_joint
from .match_consistency import add_aa, check_match
from .search_consistency import check_search


def find_misfits(content: Mapping[str, Any]) -> list[Misfit]:
    """List what is inconsistent in plain data that may hold anything."""
    arms, phases, seeds = (content.get(name) for name in ("arms", "phases", "seeds"))
    entries = [phase if isinstance(phase, dict) else {} for phase in phases] if isinstance(phases, list) else []
    misfits = [*_check_phases(entries), *check_choices(content)]
    if isinstance(seeds, list):
        counts = Counter(seed for seed in seeds if isinstance(seed, int) and 0 <= seed < 2**31)
        misfits += [(("seeds",), f"seed {seed} is listed twice") for seed, number in counts.items() if number > 1]
    if isinstance(arms, dict):
        baseline = content.get("baseline")
        if isinstance(baseline, str) and baseline not in arms:
            known = ", ".join(map(str, list(arms)[:10]))
            misfits.append((("baseline",), f"{report_unknown('no arm', baseline, arms)} The arms are {known}"))
        for name, arm in arms.items():
            if isinstance(arm, dict):
                misfits += _check_arm(name, arm, content.get("sizes"), entries)
    return [
        *misfits, *check_search(content, entries), *check_joint(content, entries), *check_match(content, entries),
    ]  # fmt: skip


def _check_phases(phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    """Find duplicate names, and phases that start from a phase that is missing or has no weights to start from."""
    before: dict[str, dict[str, Any]] = {}
    for number, phase in enumerate(phases):
        name, after = phase.get("name"), phase.get("after")
        if isinstance(after, str) and after not in before:
            yield ("phases", number, "after"), report_unknown("no phase before this one", after, before)
        elif isinstance(after, str):
            tuning = before[after].get("tuning")
            if isinstance(tuning, dict) and (mode := tuning.get("mode", "full")) != "full":
                why = f"'{after}' tunes a '{mode}' alone, whose weights no other phase can start from"
                yield ("phases", number, "after"), f"{why}; start both from the phase before it"
        if phase.get("is_shared") is True and phase.get("smallest") is not None:
            why = "a shared phase has one seed, which cannot be compared; remove smallest or is_shared"
            yield ("phases", number, "smallest"), why
        if isinstance(name, str):
            if name in before:
                yield ("phases", number, "name"), f"two phases are called '{name[:60]}'"
            before[name] = phase


def check_choices(content: Mapping[str, Any]) -> Iterator[Misfit]:
    """Find names in `only_arms` and `only_sizes` that the study does not have."""
    for what in ("arms", "sizes"):
        wanted, entries = content.get(f"only_{what}"), content.get(what)
        if isinstance(wanted, list) and isinstance(entries, dict):
            for name in wanted:
                if isinstance(name, str) and name not in entries:
                    yield (f"only_{what}",), report_unknown(f"none of the {what}", name, entries)


def _check_arm(arm_name: str, arm: Mapping[str, Any], sizes: Any, phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    """Find sizes that the study does not have, and settings that belong to no phase or that an arm cannot set."""
    lines, settings = arm.get("by_size"), arm.get("set")
    if isinstance(lines, dict) and isinstance(sizes, dict):
        for size in map(str, lines):
            if size not in sizes:
                yield ("arms", arm_name, "by_size", size), report_unknown("no size", size, sizes)
    names = list_phase_names(phases)
    for where in settings if isinstance(settings, dict) else ():
        if not isinstance(where, str):
            continue
        place = ("arms", arm_name, "set", where)
        name, setting = split_address(where, names)
        first = setting.split(".")[0]
        if name is not None and name not in names:
            yield place, report_unknown("no phase", name, names)
        elif first not in SETTABLE:
            hint = closest(first, SETTABLE) or "."
            yield place, f"an arm cannot set '{(setting or where)[:60]}'{hint} It sets {', '.join(SETTABLE)}"
        elif SETTABLE.get(setting):
            yield place, f"give a setting inside '{setting}', such as '{setting}.{SETTABLE[setting]}'"
        elif name is not None and setting.startswith("config."):
            yield place, f"all phases have the same model; give '{setting}' alone"


def choose_entries(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study as plain data, which may hold anything, with the arms and sizes it chooses."""
    chosen = dict(content)
    for what in ("arms", "sizes"):
        wanted, entries = chosen.get(f"only_{what}"), chosen.get(what)
        if isinstance(wanted, list) and isinstance(entries, dict):
            chosen[what] = {name: entries[name] for name in entries if name in wanted}
    arms, sizes, all_sizes = chosen.get("arms"), chosen.get("sizes"), content.get("sizes")
    if isinstance(arms, dict) and isinstance(sizes, dict) and isinstance(all_sizes, dict):
        dropped = set(all_sizes) - set(sizes)
        for name, arm in arms.items():
            if isinstance(arm, dict) and isinstance(lines := arm.get("by_size"), dict):
                kept = {size: line for size, line in lines.items() if size not in dropped}
                chosen["arms"] = {**chosen["arms"], name: {**arm, "by_size": kept}}
    return add_aa(chosen)
