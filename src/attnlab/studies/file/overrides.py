"""What is different where an arm is studied: a phase with the settings of one arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from attnlab.errors import StudyError

from .consistency import Misfit, addressed
from .design import Arm, Design, Phase
from .paths import put

CONFIG = "config."


def with_settings(phase: Phase, arm: Arm) -> Phase:
    """Return a phase with the settings of an arm: by path in any phase, or behind `phases.NAME.` in one."""
    changed = phase
    for where, value in arm.set.items():
        name, own = addressed(where, [phase.name])
        if name in (None, phase.name) and not own.startswith(CONFIG):
            changed = with_setting(changed, own, value)
    return changed


def with_setting(phase: Phase, where: str, value: Any) -> Phase:
    """Return a phase with one other setting."""
    content = phase.model_dump(mode="json")
    put(content, where, value, f"phase '{phase.name}'")
    try:
        return Phase.model_validate(content)
    except ValidationError as error:
        one = error.errors(include_url=False, include_context=False, include_input=False)[0]
        said = str(one["msg"]).removeprefix("Value error, ").removeprefix("Input ")
        raise StudyError(f"phase '{phase.name}' cannot have '{where}' so: {said[:1].lower()}{said[1:]}") from error


def config_of(arm: Arm) -> dict[str, Any]:
    """Return an arm's own settings of the model."""
    return {where.removeprefix(CONFIG): value for where, value in arm.set.items() if where.startswith(CONFIG)}


def wrong_settings(study: Design) -> Iterator[Misfit]:
    """Find settings of arms that a phase cannot have."""
    for arm_name, arm in study.arms.items():
        for where, value in arm.set.items():
            for phase in study.phases:
                name, own = addressed(where, [one.name for one in study.phases])
                if name not in (None, phase.name) or own.startswith(CONFIG):
                    continue
                try:
                    with_setting(phase, own, value)
                except StudyError as error:
                    yield ("arms", arm_name, "set", where), str(error)
                    break
