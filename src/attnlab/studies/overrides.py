"""What is different where an arm is studied: a stage with the settings of one arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from attnlab.errors import StudyError

from .design import Arm, Design, Stage
from .misfits import Misfit, addressed
from .paths import put

CONFIG = "config."


def with_settings(stage: Stage, arm: Arm) -> Stage:
    """Return a stage with the settings of an arm: by path in any stage, or behind `stages.NAME.` in one."""
    changed = stage
    for where, value in arm.set.items():
        name, own = addressed(where, [stage.name])
        if name in (None, stage.name) and not own.startswith(CONFIG):
            changed = with_setting(changed, own, value)
    return changed


def with_setting(stage: Stage, where: str, value: Any) -> Stage:
    """Return a stage with one other setting."""
    content = stage.model_dump(mode="python")
    put(content, where, value, f"stage '{stage.name}'")
    try:
        return Stage.model_validate(content)
    except ValidationError as error:
        one = error.errors(include_url=False, include_context=False, include_input=False)[0]
        said = str(one["msg"]).removeprefix("Value error, ").removeprefix("Input ")
        raise StudyError(f"stage '{stage.name}' cannot have '{where}' so: {said[:1].lower()}{said[1:]}") from error


def config_of(arm: Arm) -> dict[str, Any]:
    """Return an arm's own settings of the model."""
    return {where.removeprefix(CONFIG): value for where, value in arm.set.items() if where.startswith(CONFIG)}


def wrong_settings(study: Design) -> Iterator[Misfit]:
    """Find settings of arms that a stage cannot have."""
    for arm_name, arm in study.arms.items():
        for where, value in arm.set.items():
            for stage in study.stages:
                name, own = addressed(where, [one.name for one in study.stages])
                if name not in (None, stage.name) or own.startswith(CONFIG):
                    continue
                try:
                    with_setting(stage, own, value)
                except StudyError as error:
                    yield ("arms", arm_name, "set", where), str(error)
                    break
