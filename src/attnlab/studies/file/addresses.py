"""Addresses of the settings of a phase, as an arm or a search gives them: `optimizer.lr`, `phases.NAME.clip`."""

from collections.abc import Iterable

from attnlab.errors import closest

Misfit = tuple[tuple[str | int, ...], str]
"""The path of a value, and what is wrong with it."""
SETTABLE = {
    "segments": "0.batch", "optimizer": "lr", "schedule": "warmup", "tuning": "rank", "task_settings": "max_len",
    "clip": "", "precision": "", "data": "", "config": "n_layer",
}  # fmt: skip
"""The settings of a phase that an arm may set, with an example of a setting inside each that is a table."""


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
