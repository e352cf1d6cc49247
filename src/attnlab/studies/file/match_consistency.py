"""Consistency of what makes arms equal or comparable: `match`, `aa`, `target` and `figure_at`."""

from collections.abc import Iterator, Mapping
from typing import Any

from .addresses import Misfit, split_address

AA = "aa"
"""The arm that is the baseline under other seeds."""
BY_STEPS = ("operations", "seconds")
"""What arms are made equal in by their number of steps."""
BY_CONFIG = ("parameters", "state")
"""What arms are made equal in by a setting of their model's config."""


def add_aa(content: dict[str, Any]) -> dict[str, Any]:
    """Return plain data with the baseline as a second arm, if the study asks for it and has no such arm."""
    arms, baseline = content.get("arms"), content.get("baseline")
    if content.get("aa") is not True or not isinstance(arms, dict) or AA in arms or baseline not in arms:
        return content
    return {**content, "arms": {**arms, AA: arms[baseline]}}


def check_match(content: Mapping[str, Any], phases: list[dict[str, Any]]) -> Iterator[Misfit]:
    """Find what is inconsistent, in plain data that may hold anything."""
    arms, baseline = content.get("arms"), content.get("baseline")
    if not isinstance(arms, dict):
        return
    if content.get("aa") is True and isinstance(baseline, str):
        if baseline == AA:
            yield ("baseline",), "aa = true adds an arm called 'aa', so the baseline needs another name"
        elif arms.get(AA, arms.get(baseline)) != arms.get(baseline):
            yield ("arms", AA), "aa = true adds an arm called 'aa', the baseline under other seeds; rename this one"
    for number, phase in enumerate(phases):
        if phase.get("target") is not None and phase.get("smallest") is None:
            yield ("phases", number, "target"), "a phase with a target also needs smallest, so that its arms are judged"
        if phase.get("figure_at") == "best" and phase.get("evaluate_every") is None:
            why = 'figure_at = "best" chooses among evaluations during training; give evaluate_every'
            yield ("phases", number, "figure_at"), why
    if content.get("match") in (*BY_STEPS, *BY_CONFIG):
        yield from _check_chosen(content, arms, phases)


def _check_chosen(
    content: Mapping[str, Any], arms: Mapping[str, Any], phases: list[dict[str, Any]]
) -> Iterator[Misfit]:
    """Find settings that an arm or a search gives, although the match chooses them; and a model that is fixed."""
    match, names = str(content["match"]), [phase["name"] for phase in phases if isinstance(phase.get("name"), str)]
    search = content.get("search")
    over = search.get("over") if isinstance(search, dict) else {}
    places: list[tuple[tuple[Any, ...], Any]] = []
    if isinstance(over, dict):
        places += [(("search", "over", where), where) for where in over]
    for name, arm in arms.items():
        settings = arm.get("set") if isinstance(arm, dict) else {}
        if isinstance(settings, dict):
            places += [(("arms", name, "set", where), where) for where in settings]
    for place, where in places:
        setting = split_address(str(where), names)[1]
        is_length = setting.startswith("segments.") and setting.rpartition(".")[2] in ("steps", "epochs")
        if match in BY_STEPS and is_length:
            yield place, f'match = "{match}" chooses the steps of every arm; remove this setting'
    sizes = content.get("sizes")
    for name, size in sizes.items() if isinstance(sizes, dict) and match in BY_CONFIG else ():
        if isinstance(size, dict) and size.get("checkpoint") is not None:
            why = f'match = "{match}" changes the size of models, which a checkpoint has fixed; give an architecture'
            yield ("sizes", name, "checkpoint"), why
