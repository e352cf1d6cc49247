"""Settings by their paths: of a study, as in `--set phases.recall.segments.0.steps=3`, and those of an arm."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from pydantic import ValidationError

from attnlab.errors import StudyError, closest

from .addresses import Misfit, split_address
from .design import CONFIG, Arm, Design, Phase

Path = tuple[str, ...]
DEEPEST = 30
MAX_NAMES = 8


def apply_settings(phase: Phase, arm: Arm) -> Phase:
    """Return a phase with the settings of an arm: by path in any phase, or after `phases.NAME.` in one."""
    changed = phase
    for where, value in arm.set.items():
        name, setting = split_address(where, phase.names)
        if name in (None, *phase.names) and not setting.startswith(CONFIG):
            changed = _change_setting(changed, setting, value)
    return changed


def apply_values(phase: Phase, values: Mapping[str, Any]) -> Phase:
    """Return a phase with the values that a search tries in it."""
    changed = phase
    for where, value in values.items():
        changed = _change_setting(changed, split_address(where, phase.names)[1], value)
    return changed


def select_grid(study: Design, phase: Phase, arm: Arm) -> dict[str, list[Any]]:
    """Return the values that the search of a study tries for an arm in a phase; empty if it tries none."""
    if study.search is None:
        return {}
    grid = {}
    for where, values in study.search.over.items():
        name, _ = split_address(where, [name for each in study.phases for name in each.names])
        if name in phase.names or (name is None and phase.is_compared):
            grid[where] = list(arm.over.get(where, values))
    return grid


def find_wrong_settings(study: Design) -> Iterator[Misfit]:
    """Find settings of arms, and values of a search, that a phase cannot have."""
    yield from _find_wrong_values(study)
    names = [phase.name for phase in study.phases]
    for arm_name, arm in study.arms.items():
        for where, value in arm.set.items():
            name, setting = split_address(where, names)
            for phase in study.phases:
                if name not in (None, phase.name) or setting.startswith(CONFIG):
                    continue
                try:
                    _change_setting(phase, setting, value)
                except StudyError as error:
                    yield ("arms", arm_name, "set", where), str(error)
                    break


def _find_wrong_values(study: Design) -> Iterator[Misfit]:
    for phase, (name, arm) in product(study.phases, study.arms.items()):
        for where, values in select_grid(study, phase, arm).items():
            place = ("arms", name, "over", where) if where in arm.over else ("search", "over", where)
            for value in values:
                try:
                    apply_values(phase, {where: value})
                except StudyError as error:
                    yield place, str(error)
                    break


def set_value(content: Any, where: str, value: Any, origin: str, above: Path = ()) -> list[Path]:
    """Set the value at a path, and return the paths that were set; a table is merged into a table.

    An entry of a list is given by its number or its `name`; a missing table is made. origin: the source of the value,
    for errors. above: the path of the content itself.
    """
    steps, place, walked = where.split("."), content, list(above)
    if len(steps) > DEEPEST:
        raise StudyError(f"{origin}: '{where[:60]}…' does not exist: no setting is that deep")
    while True:
        has_path_keys = _is_below(walked, "arms", "set", "over") or _is_below(walked, "search", "over")
        has_path_keys = has_path_keys and isinstance(place, dict)
        key, rest = (".".join(steps), []) if has_path_keys else _match_steps(place, steps)
        if key is None:
            raise StudyError(f"{origin}: '{where}' does not exist: {_explain_missing_setting(place, walked, steps[0])}")
        walked.append(str(key))
        if not rest:
            break
        if isinstance(place, dict):
            place.setdefault(key, {})
        place, steps = place[key], rest
    old = place.get(key) if isinstance(place, dict) else place[key]
    if isinstance(value, Mapping) and value and isinstance(old, dict | list):
        return [path for name, entry in value.items() for path in set_value(old, name, entry, origin, tuple(walked))]
    place[key] = value
    return [tuple(walked)]


def _explain_missing_setting(place: Any, walked: list[str], step: str) -> str:
    """Say which step of a path leads nowhere, and which ones a list has."""
    missing = f"there is no '{'.'.join([*walked, step])}'"
    if not isinstance(place, list) or not place:
        return missing
    names = [str(entry.get("name", at)) if isinstance(entry, dict) else str(at) for at, entry in enumerate(place)]
    hint = closest(step, names) or f"; '{'.'.join(walked)}' has {', '.join(names[:MAX_NAMES])}"
    return f"{missing}{hint}"


def _is_below(walked: list[str], first: str, *last: str) -> bool:
    """Tell whether a path leads to the settings of an arm or the search, whose keys are paths themselves."""
    return walked[:1] == [first] and walked[-1] in last and len(walked) == (3 if first == "arms" else 2)


def _match_steps(place: Any, steps: list[str]) -> tuple[Any, list[str]]:
    """Return the key that the next steps name in a table or a list, None if there is none, and the steps left."""
    ends = range(len(steps), 0, -1)  # a name may contain dots, such as 0.5B
    if isinstance(place, dict):
        known = next((end for end in ends if ".".join(steps[:end]) in place), 1)
        return ".".join(steps[:known]), steps[known:]
    if isinstance(place, list):
        first = steps[0]
        if first.isascii() and first.isdigit() and len(first) < 7:
            return (int(first), steps[1:]) if int(first) < len(place) else (None, steps)
        names = [entry.get("name") if isinstance(entry, dict) else None for entry in place]
        for end in ends:
            if (name := ".".join(steps[:end])) in names:
                return names.index(name), steps[end:]
    return None, steps


def _change_setting(phase: Phase, where: str, value: Any) -> Phase:
    content = phase.model_dump(mode="json")
    set_value(content, where, value, f"phase '{phase.name}'")
    try:
        return Phase.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        message = str(first["msg"]).removeprefix("Value error, ").removeprefix("Input ")
        text = f"{message[:1].lower()}{message[1:]}"
        raise StudyError(f"phase '{phase.name}' cannot have this value of '{where}': {text}") from error
