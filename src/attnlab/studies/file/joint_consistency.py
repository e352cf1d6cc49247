"""Consistency of what a study asks about several sizes, horizons or tasks."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .addresses import AT, Misfit, report_unknown, split_address, strip_horizon

MIN_SIZES = 3
"""Sizes of a trend, as in `attnlab.statistics.trend`, which takes half a second to import."""
MAX_PHASES = 20
LENGTHS = ("steps", "epochs")


def check_joint(content: Mapping[str, Any], phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    """Find what is inconsistent in the trend, the horizons and the conclusion, in plain data that may hold anything."""
    trend, conclusion, sizes = (content.get(name) for name in ("trend", "conclusion", "sizes"))
    for what, asked in (("trend", trend), ("conclusion", conclusion)):
        if isinstance(asked, dict):
            yield from _check_phases((what, "phases"), asked.get("phases"), phases)
            if not any(phase.get("smallest") is not None for phase in phases):
                yield (what,), "no phase is compared; give a phase smallest"
    # A budget may choose fewer sizes for a first try; the answer then says that there is no trend.
    is_chosen = content.get("only_sizes") is not None
    if isinstance(trend, dict) and isinstance(sizes, dict) and 0 < len(sizes) < MIN_SIZES and not is_chosen:
        num = f"{len(sizes)} size{'s' * (len(sizes) > 1)}"
        yield ("trend",), f"a trend needs {MIN_SIZES} sizes or more, and the study has {num}"
    yield from _check_horizons(content, phases)


def _check_phases(place: tuple[str, ...], wanted: Any, phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    """Find names of phases that do not exist, that are not compared, or that are listed twice."""
    named = [phase for phase in phases if isinstance(phase.get("name"), str)]
    compared = {strip_horizon(phase["name"]) for phase in named if phase.get("smallest") is not None}
    known = list(dict.fromkeys(strip_horizon(phase["name"]) for phase in named))
    names = [name for name in wanted if isinstance(name, str)] if isinstance(wanted, list) else []
    for name, number in Counter(names).items():
        if name not in known:
            yield place, f"{report_unknown('no phase', name, known)} The phases are {', '.join(known[:10])}"
        elif name not in compared:
            yield place, f"phase '{name}' is not compared; give it smallest"
        elif number > 1:
            yield place, f"phase '{name}' is listed twice"


def _check_horizons(content: Mapping[str, Any], phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    horizons = content.get("horizons")
    known = horizons if isinstance(horizons, list) else []
    for number, phase in enumerate(phases):
        name = phase.get("name")
        if isinstance(name, str) and AT in name and name.partition(AT)[2] not in map(str, known):
            why = f"'{AT}' in the name of a phase is for a horizon; horizons = [1000, 2000] makes such phases"
            yield ("phases", number, "name"), why
    if not all(type(steps) is int for steps in known) or not known:
        return
    compared = [(number, phase) for number, phase in enumerate(phases) if phase.get("smallest") is not None]
    if not compared:
        yield ("horizons",), "no phase is compared, so there is nothing to train for several horizons"
    num_phases = len(phases) + len(compared) * (len(known) - 1)
    if num_phases > MAX_PHASES and not any(AT in str(phase.get("name")) for phase in phases):
        yield ("horizons",), f"these horizons make {num_phases} phases; a study has at most {MAX_PHASES}"
    for number, phase in compared:
        yield from _check_segments(("phases", number, "segments"), phase.get("segments"), min(known))
    yield from _check_lengths(content, [str(phase.get("name")) for _, phase in compared])


def _check_segments(place: tuple[str | int, ...], segments: Any, shortest: int) -> Iterator[Misfit]:
    parts = [part for part in segments if isinstance(part, dict)] if isinstance(segments, list | tuple) else []
    if len(parts) > 1 and any(part.get("epochs") is not None for part in parts):
        yield place, "horizons scale several segments in proportion to their steps; give steps instead of epochs"
    elif len(parts) > shortest:
        yield place, f"{len(parts)} segments do not fit into {shortest} steps, the shortest horizon"


def _check_lengths(content: Mapping[str, Any], compared: list[str]) -> Iterator[Misfit]:
    """Find arms and searches that set the length of a phase, which the horizons set."""
    arms, search = content.get("arms"), content.get("search")
    places: list[tuple[tuple[str, ...], str]] = [
        (("arms", name, "set", where), where) for name, arm in (arms.items() if isinstance(arms, dict) else ())
        if isinstance(arm, dict) and isinstance(arm.get("set"), dict) for where in arm["set"]
    ]  # fmt: skip
    over = search.get("over") if isinstance(search, dict) else None
    places += [(("search", "over", where), where) for where in (over if isinstance(over, dict) else ())]
    for place, where in places:
        name, setting = split_address(str(where), compared)
        if name in (None, *compared, *map(strip_horizon, compared)) and setting.rpartition(".")[2] in LENGTHS:
            yield place, f"the horizons set the steps of every compared phase; remove '{where}'"
