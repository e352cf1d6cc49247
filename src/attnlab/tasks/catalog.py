"""Every task by its name."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from attnlab.data import PROBES
from attnlab.errors import TaskError, closest

from .classification import BOOLQ, GLUE, SPELLINGS, TEXT, Classification
from .language import Clm, Mlm
from .probes import CompressionTask, ProbeTask
from .squad import Squad

AnyTask = Mlm | Clm | Squad | Classification | ProbeTask

PROBE_TASKS: Mapping[str, ProbeTask] = {
    name: (CompressionTask if name == "compression" else ProbeTask)(name, vocab=kind.vocab, length=kind.length)
    for name, kind in PROBES.items()
}

TASKS: Mapping[str, AnyTask] = {
    "mlm": Mlm(),
    "clm": Clm(),
    "squad": Squad(),
    "squad_v2": Squad("squad_v2", has_null=True),
    **{task.name: task for task in GLUE},
    "boolq": BOOLQ,
    "text": TEXT,
    **PROBE_TASKS,
}


def load(name: str, /, **settings: Any) -> Any:
    """Return a task by its name, with changed settings: `load("squad", max_len=256)`."""
    known = SPELLINGS.get(name.lower(), name.lower())
    if known not in TASKS:
        raise TaskError(f"there is no task '{name}'{closest(name, TASKS) or '.'} There are: {', '.join(TASKS)}")
    task = TASKS[known]
    taken = [field.name for field in fields(task) if field.name not in ("name", "head", "higher_is_better")]
    for setting in settings:
        if setting not in taken:
            hint = closest(setting, taken) or "."
            raise TaskError(f"the task '{known}' has no setting '{setting}'{hint} It takes {', '.join(taken)}")
        _check_setting(f"{setting} of the task '{known}'", settings[setting], getattr(task, setting))
    return replace(task, **settings)


def _check_setting(what: str, value: Any, default: Any) -> None:
    simple = bool, int, float, str
    if isinstance(default, simple):
        kinds = (int, float) if type(default) is float else (type(default),)
        if type(value) not in kinds:
            raise TaskError(f"{what} is a {type(default).__name__}, such as {default!r}, not {value!r}")
    elif value is None or isinstance(value, simple):
        raise TaskError(f"{what} is a {type(default).__name__}, not {value!r}; it can be set from Python alone")
