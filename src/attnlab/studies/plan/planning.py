"""The planned runs of a study, and the paths of its data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from attnlab.errors import StudyError, closest
from attnlab.notebook import Facts, Showable
from attnlab.training import RunSpec
from attnlab.training.spec import DataSource

from ..file.design import Design
from ..file.overrides import apply_settings
from .search import Trial, Values


@dataclass(frozen=True, repr=False)
class PlannedRun(Showable):
    """One run of a study."""

    id: str
    arm: str
    size: str
    phase: str
    seed: int
    run: RunSpec
    parent: str | None = None
    """The id of the run whose weights this one starts from."""
    trial: Trial | None = None
    """What it tries, if it is made for tuning; no verdict uses such a run."""
    chosen: Values = field(default_factory=dict)
    """The values that trials chose for it."""
    obstacle: str = ""
    """Why it cannot be trained."""

    @property
    def is_trial(self) -> bool:
        """Whether the run is made for tuning."""
        return self.trial is not None

    @property
    def title(self) -> str:
        """A name to show."""
        if self.trial is None:
            return f"{self.phase}, {self.size}, {self.arm}, seed {self.seed}"
        whose = "all seeds" if self.trial.seed is None else f"seed {self.trial.seed}"
        return f"{self.phase}, {self.size}, {self.arm}, trial for {whose}: {self.trial.title}"

    def facts(self) -> Facts:
        """Return the title, and what the run shows of itself."""
        spec = self.run.facts()
        return Facts(f"{self.title} ({self.id})", spec.title, rows=spec.rows)

    def at(self, runs: Path) -> RunSpec:
        """Return the run as it is trained below a folder of runs."""
        run = self.run.replace(title=self.title)
        if self.parent is None:
            return run
        start = run.start.replace(architecture=None, checkpoint=str(runs / self.parent), config={})
        return run.replace(start=start, data=run.data.replace(tokenizer=None))


def hash_data(study: Design, sources: Mapping[str, str] | None = None) -> dict[str, dict[str, str]]:
    """Return the hashes of the data of a study, by name and split."""
    from .identity import hash_source

    located = locate_sources(study, sources or {})
    return {name: hash_source(located[name]) for name in list_data(study)}


def locate_sources(study: Design, given: Mapping[str, str]) -> dict[str, DataSource]:
    """Return the data of a study, with the paths that were given for it."""
    located = dict(study.data)
    wanted = {*located, *list_data(study)}
    for name, place in given.items():
        base, _, part = (name, "", "") if name in wanted else name.rpartition(".")
        if base not in wanted or part not in ("", "train", "dev", "tune"):
            hint = closest(name, wanted) or "."
            raise StudyError(
                "--data takes name=PATH, name.train=PATH, name.dev=PATH or name.tune=PATH, and the study takes no data "
                f"called '{name}'{hint} It takes {', '.join(sorted(wanted))}"
            )
        old = located.get(base)
        changed = {part: place} if part else {"train": place, "dev": None}
        located[base] = DataSource(train=place) if old is None else old.model_copy(update=changed)
    return located


def list_data(study: Design) -> dict[str, str]:
    """Return the names of the data of a study, each with the first phase that reads it."""
    phases: dict[str, str] = {}
    for phase in study.phases:
        for changed in (phase, *(apply_settings(phase, arm) for arm in study.arms.values())):
            phases.setdefault(changed.data, phase.name)
    return phases
