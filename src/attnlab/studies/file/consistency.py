"""What does not fit together in a study whose single values may all be right: names that nothing has, doubles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from attnlab.errors import closest

Misfit = tuple[tuple[str | int, ...], str]
"""A place, and what is wrong there."""

SETTABLE = ("segments", "optimizer", "schedule", "tuning", "task_settings", "clip", "precision", "data", "config")
"""What an arm may set of a phase: what else makes up a phase, all arms have in common."""
WHOLE = ("clip", "precision", "data")
"""Those that are no tables."""


def misfits(content: Mapping[str, Any]) -> list[Misfit]:
    """List what does not fit together, in plain data that may hold anything."""
    arms, phases = content.get("arms"), content.get("phases")
    entries = [phase if isinstance(phase, dict) else {} for phase in phases] if isinstance(phases, list) else []
    found = [*of_phases(entries), *of_choices(content)]
    seeds = content.get("seeds")
    if isinstance(seeds, list):
        counts = Counter(seed for seed in seeds if isinstance(seed, int) and 0 <= seed < 2**31)
        found += [(("seeds",), f"seed {seed} stands twice") for seed, number in counts.items() if number > 1]
    if isinstance(arms, dict):
        baseline = content.get("baseline")
        if isinstance(baseline, str) and baseline not in arms:
            hint = closest(baseline, arms) or "."
            known = ", ".join(map(str, list(arms)[:10]))
            found.append((("baseline",), f"no arm is called '{baseline[:60]}'{hint} The arms are {known}"))
        for name, arm in arms.items():
            if isinstance(arm, dict):
                found += [(("arms", name, "by_size", size), why) for size, why in of_sizes(arm, content.get("sizes"))]
            if isinstance(arm, dict) and isinstance(arm.get("set"), dict):
                found += [(("arms", name, "set", where), why) for where, why in of_settings(arm["set"], entries)]
    return found


def of_phases(phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    """Find phases of one name, and phases after none or after what they cannot start from."""
    before: dict[str, dict[str, Any]] = {}
    for number, phase in enumerate(phases):
        name, after = phase.get("name"), phase.get("after")
        if isinstance(after, str) and after not in before:
            hint = closest(after, before) or "."
            yield ("phases", number, "after"), f"no phase before this one is called '{after[:60]}'{hint}"
        elif isinstance(after, str) and (mode := mode_of(before[after])) != "full":
            why = f"'{after}' tunes a '{mode}' alone, whose weights no other phase can start from"
            yield ("phases", number, "after"), f"{why}; start both from the phase before it"
        if phase.get("is_shared") is True and phase.get("smallest") is not None:
            why = "a phase that is shared has one seed, which cannot be compared; leave smallest or is_shared out"
            yield ("phases", number, "smallest"), why
        if isinstance(name, str):
            if name in before:
                yield ("phases", number, "name"), f"two phases are called '{name[:60]}'"
            before[name] = phase


def mode_of(phase: Mapping[str, Any]) -> Any:
    """Return what a phase tunes."""
    tuning = phase.get("tuning")
    return tuning.get("mode", "full") if isinstance(tuning, dict) else "full"


def of_choices(content: Mapping[str, Any]) -> Iterator[Misfit]:
    """Find arms and sizes that are to be taken and are not there."""
    for what in ("arms", "sizes"):
        wanted, there = content.get(f"only_{what}"), content.get(what)
        if isinstance(wanted, list) and isinstance(there, dict):
            for name in wanted:
                if isinstance(name, str) and name not in there:
                    yield (f"only_{what}",), f"none of the {what} is called '{name[:60]}'{closest(name, there) or '.'}"


def of_sizes(arm: Mapping[str, Any], sizes: Any) -> Iterator[tuple[str, str]]:
    """Find lines of an arm for sizes that the study has not."""
    own = arm.get("by_size")
    if isinstance(own, dict) and isinstance(sizes, dict):
        for size in map(str, own):
            if size not in sizes:
                yield size, f"no size is called '{size[:60]}'{closest(size, sizes) or '.'}"


def of_settings(settings: Mapping[Any, Any], phases: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Find settings of an arm that are of no phase, or not an arm's to set."""
    names = [phase["name"] for phase in phases if isinstance(phase.get("name"), str)]
    for where in settings:
        if not isinstance(where, str):
            continue
        name, own = addressed(where, names)
        if name is not None and name not in names:
            yield where, f"no phase is called '{name[:60]}'{closest(name, names) or '.'}"
        elif own.split(".")[0] not in SETTABLE:
            hint = closest(own.split(".")[0], SETTABLE) or "."
            yield where, f"an arm cannot set '{(own or where)[:60]}'{hint} It sets {', '.join(SETTABLE)}"
        elif own in SETTABLE and own not in WHOLE:
            yield where, f"give a setting inside '{own}', such as '{own}.{EXAMPLES[own]}'"
        elif name is not None and own.startswith("config."):
            yield where, f"the model is one over all phases; give '{own}' alone"


EXAMPLES = {
    "segments": "0.batch", "optimizer": "lr", "schedule": "warmup", "tuning": "rank", "task_settings": "max_len",
    "config": "n_layer",
}  # fmt: skip


def addressed(where: str, names: list[str]) -> tuple[str | None, str]:
    """Part `phases.NAME.setting` into the phase it is for and the setting; None where it is for all."""
    if not where.startswith("phases."):
        return None, where
    rest = where.removeprefix("phases.")
    known = [name for name in names if rest.startswith(f"{name}.")]
    name = max(known, key=len) if known else rest.partition(".")[0]
    return name, rest.removeprefix(name).removeprefix(".")
