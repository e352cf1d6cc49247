"""Settings by their paths, as in `--set phases.recall.segments.0.steps=3`: where a path leads in plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attnlab.errors import StudyError

Path = tuple[str, ...]
DEEPEST = 30


def put(content: Any, where: str, value: Any, said_by: str, above: Path = ()) -> list[Path]:
    """Put a value at a path, and return the paths that were set; a table is put into a table one by one.

    A list is stepped into by a number, or by the `name` of its entry; a table that is not there yet is made. above:
    the path of the content itself.
    """
    steps, place, walked = where.split("."), content, list(above)
    if len(steps) > DEEPEST:
        raise StudyError(f"{said_by}: '{where[:60]}…' leads nowhere: it is deeper than any setting")
    while True:
        key, rest = (".".join(steps), []) if is_by_path(walked, place) else match(place, steps)
        if key is None:
            raise StudyError(f"{said_by}: '{where}' leads nowhere: there is no '{'.'.join([*walked, steps[0]])}'")
        walked.append(str(key))
        if not rest:
            break
        if isinstance(place, dict):
            place.setdefault(key, {})
        place, steps = place[key], rest
    old = place.get(key) if isinstance(place, dict) else place[key]
    if isinstance(value, Mapping) and value and isinstance(old, dict | list):
        return [path for name, own in value.items() for path in put(old, name, own, said_by, tuple(walked))]
    place[key] = value
    return [tuple(walked)]


def is_by_path(walked: list[str], place: Any) -> bool:
    """Tell whether a table is an arm's own settings, whose keys are paths themselves."""
    return len(walked) == 3 and (walked[0], walked[2]) == ("arms", "set") and isinstance(place, dict)


def match(place: Any, steps: list[str]) -> tuple[Any, list[str]]:
    """Return what the next steps name in a table or a list, and the steps that are left; None where nothing is."""
    ends = range(len(steps), 0, -1)  # a name may have dots of its own, as 0.5B has
    if isinstance(place, dict):
        known = next((end for end in ends if ".".join(steps[:end]) in place), 1)
        return ".".join(steps[:known]), steps[known:]
    if isinstance(place, list):
        first = steps[0]
        if first.isascii() and first.isdigit() and len(first) < 7:
            return (int(first), steps[1:]) if int(first) < len(place) else (None, steps)
        names = [one.get("name") if isinstance(one, dict) else None for one in place]
        for end in ends:
            if (name := ".".join(steps[:end])) in names:
                return names.index(name), steps[end:]
    return None, steps
