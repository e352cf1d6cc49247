"""Addresses of the settings of a phase, as an arm or a search gives them: `optimizer.lr`, `phases.NAME.clip`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attnlab.errors import closest

Misfit = tuple[tuple[str | int, ...], str]
"""The path of a value, and what is wrong with it."""
SETTABLE = {
    "segments": "0.batch", "optimizer": "lr", "schedule": "warmup", "tuning": "rank", "task_settings": "max_len",
    "clip": "", "precision": "", "data": "", "config": "n_layer",
}  # fmt: skip
"""The settings of a phase that an arm may set, with an example of a setting inside each that is a table."""

AT = "@"
"""Between the name of a phase and its horizon: pretrain@1000."""


def strip_horizon(name: str) -> str:
    """Return the name of a phase as the study file has it."""
    return name.partition(AT)[0]


def list_phase_names(phases: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the names by which a study addresses its phases; a phase with horizons has its own name as well."""
    names = [phase["name"] for phase in phases if isinstance(phase.get("name"), str)]
    return list(dict.fromkeys([*names, *map(strip_horizon, names)]))


def report_unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Describe a name that nothing has, with the closest one."""
    return f"{what} is called '{name[:60]}'{closest(name, known) or '.'}"


def split_address(where: str, names: list[str]) -> tuple[str | None, str]:
    """Split `phases.NAME.setting` into the phase and the setting; the phase is None if it is for all."""
    if not where.startswith("phases."):
        return None, where
    rest = where.removeprefix("phases.")
    known = [name for name in names if rest.startswith(f"{name}.")]
    name = max(known, key=len) if known else rest.partition(".")[0]
    return name, rest.removeprefix(name).removeprefix(".")
