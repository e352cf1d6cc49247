"""Consistency of a search: settings that can be tuned, as many values for every arm, and a grid that can go on."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from .addresses import SETTABLE, Misfit, list_phase_names, report_unknown, split_address

SHARED = ("data", "task_settings", "config", "precision")
"""Settings that all runs which are compared must share."""
SHARED_IN_SEGMENTS = ("batch", "length", "window", "micro_batch")


def check_search(content: Mapping[str, Any], phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    """Find what is inconsistent in the search of a study, in plain data that may hold anything."""
    search, arms = content.get("search"), content.get("arms")
    over = search.get("over") if isinstance(search, dict) else {}
    if not isinstance(over, dict):
        return
    for where, values in over.items():
        yield from _check_address(("search", "over", where), where, phases)
        yield from _check_values(("search", "over", where), values)
    for name, arm in arms.items() if isinstance(arms, dict) else ():
        if isinstance(arm, dict):
            yield from _check_arm(name, arm, over)
    if isinstance(search, dict) and over:
        yield from _check_trials(search, over)


def _check_address(place: tuple[str, ...], where: str, phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    names = list_phase_names(phases)
    name, setting = split_address(where, names)
    first, last = setting.split(".")[0], setting.rpartition(".")[2]
    if name is not None and name not in names:
        yield place, report_unknown("no phase", name, names)
    elif first not in SETTABLE or SETTABLE.get(setting):
        yield place, f"a search cannot try '{where[:60]}'; it tries settings such as 'optimizer.lr' or 'clip'"
    elif first in SHARED or (first == "segments" and last in SHARED_IN_SEGMENTS):
        yield place, f"runs that are compared must share '{setting[:60]}', so a search cannot choose it for each arm"
    elif name is None and not any(phase.get("smallest") is not None for phase in phases):
        yield place, f"no phase is compared; give the phase, 'phases.NAME.{where}', or smallest in a phase"


def _check_values(place: tuple[str, ...], values: Any) -> Iterator[Misfit]:
    if isinstance(values, list) and any(value in values[:at] for at, value in enumerate(values)):
        yield place, "a value is listed twice"


def _check_arm(name: str, arm: Mapping[str, Any], over: Mapping[str, Any]) -> Iterator[Misfit]:
    settings, own = arm.get("set"), arm.get("over")
    for where in settings if isinstance(settings, dict) else ():
        if where in over:
            why = f"the search chooses '{where}'; give the arm values of its own to try, over = {{ \"{where}\" = […] }}"
            yield ("arms", name, "set", where), why
    for where, values in own.items() if isinstance(own, dict) else ():
        place = ("arms", name, "over", where)
        yield from _check_values(place, values)
        if where not in over:
            yield place, report_unknown("no setting of the search", str(where), [str(known) for known in over])
        elif isinstance(values, list) and isinstance(over[where], list) and len(values) != len(over[where]):
            why = f"{len(values)} values, and the search has {len(over[where])}: every arm gets as many trials"
            yield place, why


def _check_trials(search: Mapping[str, Any], over: Mapping[str, Any]) -> Iterator[Misfit]:
    num_points = math.prod(len(values) for values in over.values() if isinstance(values, list))
    trials = search.get("trials")
    if isinstance(trials, int) and trials > num_points:
        yield (
            ("search", "trials"),
            f"{trials} trials, but the grid has {num_points} points; omit trials to try all",
        )
    if search.get("extend") is not True:
        return
    if search.get("halve") is True or (isinstance(trials, int) and trials < num_points):
        yield (
            ("search", "extend"),
            "only a grid that is tried as a whole can go on; omit extend, or halve and trials",
        )
    for where, values in over.items():
        is_number = isinstance(values, list) and all(type(value) in (int, float) and value > 0 for value in values)
        if not is_number or len(values) < 2:
            yield ("search", "over", where), "a grid can go on (extend) if it has at least 2 numbers above 0"
