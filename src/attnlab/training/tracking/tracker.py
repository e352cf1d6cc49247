"""What a tracker is: a class with `start`, `log` and `finish`, registered under a name.

A run names its trackers in `trackers`. `NAME` keeps everything on this machine, `NAME:online` may send it elsewhere.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from attnlab.errors import TrainingError, closest

ONLINE = "online"


@dataclass(frozen=True)
class TrackedRun:
    """What a tracker is told about a run before its first update."""

    folder: Path
    """Where the tracker keeps its files, below the folder of the run; the same when the run is resumed."""
    id: str
    """Drawn when the run was first tracked; the same when it is resumed."""
    project: str
    name: str
    config: Mapping[str, Any]
    """The settings of the run that affect its result."""
    step: int = 0
    """Updates made before this process."""
    is_online: bool = False
    """Whether the user asked to send figures to a server."""


class Tracker:
    """Receives the figures of a run. An error in a tracker ends its tracking, not the run."""

    package: ClassVar[str] = ""
    """The package that the tracker needs, as pip names it."""

    def check(self, is_online: bool) -> None:
        """Raise a `TrainingError` if the tracker cannot be used as asked; called before training."""
        if is_online:
            raise TrainingError("this tracker sends nothing, so it has no ':online'; leave that out")

    def start(self, run: TrackedRun) -> None:
        """Begin, or continue what was begun with the same id."""
        raise NotImplementedError

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Record figures after an update; a step may have several calls, and no figure comes twice."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write what is still in memory; called once, also if the run failed."""


T = TypeVar("T", bound=type[Tracker])
TRACKERS: dict[str, type[Tracker]] = {}
"""The registered trackers by name."""


def tracker(name: str) -> Callable[[T], T]:
    """Register a tracker under a name; to be used as a decorator of its class."""

    def register(cls: T) -> T:
        if not (isinstance(cls, type) and issubclass(cls, Tracker)):
            raise TrainingError(f"the tracker '{name}' must be a class derived from attnlab.training.Tracker")
        if not name or ":" in name:
            raise TrainingError(f"the name of a tracker is a word without ':', not '{name}'")
        TRACKERS[name] = cls
        return cls

    return register


def make_trackers(names: Collection[str]) -> dict[str, tuple[Tracker, bool]]:
    """Make the trackers of a run, and tell which may send; refuse unknown ones and those without their package."""
    made: dict[str, tuple[Tracker, bool]] = {}
    for text in names:
        name, colon, place = text.partition(":")
        if name not in TRACKERS:
            hint, known = closest(name, TRACKERS) or ".", ", ".join(sorted(TRACKERS))
            raise TrainingError(f"trackers: there is no tracker '{name}'{hint} There are {known}")
        if colon and place != ONLINE:
            raise TrainingError(f"trackers: after the name only ':{ONLINE}' can follow, as in '{name}:{ONLINE}'")
        if name in made:
            raise TrainingError(f"trackers: '{name}' is named twice")
        instance = TRACKERS[name]()
        if instance.package and find_spec(instance.package) is None:
            raise TrainingError(f"the tracker '{name}' needs a package that is missing: pip install {instance.package}")
        try:
            instance.check(is_online=bool(colon))
        except TrainingError as error:
            raise TrainingError(f"trackers: '{text}': {error}") from error
        made[name] = instance, bool(colon)
    return made
