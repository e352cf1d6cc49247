"""The runs of a study: one for each phase, size, arm and seed, with an id made of all that determines its result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import AttnlabError, StudyError, closest
from attnlab.training import Data, RunSpec, Settings
from attnlab.training.spec import Source

from ..file.design import Arm, Design, Phase, Size
from ..file.overrides import config_of, with_settings

Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study."""

    id: str
    arm: str
    size: str
    phase: str
    seed: int
    run: RunSpec
    parent: str | None = None
    """The id of the run whose weights this one starts from."""

    @property
    def title(self) -> str:
        """What a person calls it."""
        return f"{self.phase}, {self.size}, {self.arm}, seed {self.seed}"

    def at(self, runs: Path) -> RunSpec:
        """Return the run as it is trained below a folder of runs."""
        if self.parent is None:
            return self.run
        start = self.run.start.replace(architecture=None, checkpoint=str(runs / self.parent), config={})
        return self.run.replace(start=start, data=self.run.data.replace(tokenizer=None))


def plan(
    study: Design, sources: Mapping[str, str] | None = None, threads: int = 1, plugins: Sequence[str] = (),
    leaking: Collection[str] = (),
) -> list[PlannedRun]:  # fmt: skip
    """Make the runs of a study. sources: where data is that it names. plugins: files of the user's own stages.

    leaking: arms that see the future, whose language models are also evaluated on the past alone.
    """
    # Imported here because runs that were planned are read without torch.
    from .identity import contents_of_stages, id_of
    from .required_inputs import contents_of

    found = placed_sources(study, sources or {})
    taken = taken_by(study)
    for name, phase_name in taken.items():
        if name not in found:
            known = ", ".join(found) or "none"
            hint = closest(name, found) or "."
            raise StudyError(f"phase '{phase_name}' takes the data '{name}'{hint} The study has {known}")
    contents, starts = contents_of(study, found, taken)
    planned: dict[Key, PlannedRun] = {}
    for phase in study.phases:
        for size_name, size in study.sizes.items():
            for arm_name, arm in study.arms.items():
                own, line = with_settings(phase, arm), arm.line(size_name)
                made = make_run(own, arm, size, found[own.data], line)
                own_files = contents_of_stages(line, plugins)
                made = with_honest_figure(made) if arm_name in leaking else made
                check_run(made, f"phase '{phase.name}', size '{size_name}', arm '{arm_name}'")
                for seed in study.seeds[:1] if phase.is_shared else study.seeds:
                    key = (phase.name, size_name, arm_name, seed)
                    parent = parent_of(study, phase, planned, key)
                    run = made.replace(seed=seed, threads=threads)
                    id = id_of(run, parent, {**contents[own.data], **starts[size_name], **own_files})
                    planned[key] = PlannedRun(id, arm_name, size_name, phase.name, seed, run, parent)
    check_distinct(list(planned.values()))
    return list(planned.values())


def contents_of_study(study: Design, sources: Mapping[str, str] | None = None) -> dict[str, dict[str, str]]:
    """Return the hashes of the data that a study takes, by name and split."""
    from .identity import contents_of_source

    found = placed_sources(study, sources or {})
    return {name: contents_of_source(found[name]) for name in taken_by(study)}


def taken_by(study: Design) -> dict[str, str]:
    """Return the data that a study takes, each with the first phase that does."""
    found: dict[str, str] = {}
    for phase in study.phases:
        for own in (phase, *(with_settings(phase, arm) for arm in study.arms.values())):
            found.setdefault(own.data, phase.name)
    return found


def placed_sources(study: Design, given: Mapping[str, str]) -> dict[str, Source]:
    """Return the data of a study, with the places that were given for it."""
    found = dict(study.data)
    wanted = {*found, *taken_by(study)}
    for name, place in given.items():
        base, _, part = (name, "", "") if name in wanted else name.rpartition(".")
        if base not in wanted or part not in ("", "train", "dev"):
            hint = closest(name, wanted) or "."
            raise StudyError(
                f"--data takes name=PATH, name.train=PATH or name.dev=PATH, and the study takes no data called "
                f"'{name}'{hint} It takes {', '.join(sorted(wanted))}"
            )
        old = found.get(base)
        changed = {part: place} if part else {"train": place, "dev": None}
        found[base] = Source(train=place) if old is None else old.model_copy(update=changed)
    return found


def parent_of(study: Design, phase: Phase, planned: Mapping[Key, PlannedRun], key: Key) -> str | None:
    """Return the run that a run comes after."""
    if phase.after is None:
        return None
    before = next(one for one in study.phases if one.name == phase.after)
    _, size, arm, seed = key
    return planned[phase.after, size, arm, study.seeds[0] if before.is_shared else seed].id


def make_run(phase: Phase, arm: Arm, size: Size, source: Source, line: str) -> RunSpec:
    """Make the run of a phase, an arm, a size and its mechanism's line; its seed is yet to be set."""
    return RunSpec(
        task=phase.task, task_settings=phase.task_settings,
        start=size.start(config_of(arm), line),
        data=Data(**dict(source), tokenizer=size.tokenizer),
        **{name: getattr(phase, name) for name in Settings.model_fields},
    )  # fmt: skip


def with_honest_figure(run: RunSpec) -> RunSpec:
    """Return a run that is evaluated on the past alone as well, where its task has such a figure."""
    if run.task.lower() != "clm":
        return run
    return run.replace(task_settings={**run.task_settings, "is_honest": True})


def check_run(run: RunSpec, where: str) -> None:
    """Refuse what no run could begin with, while nothing is there yet: a task, an architecture, their settings."""
    from attnlab.tasks import load as load_task
    from attnlab.training.weights import config_of as model_config
    from attnlab.training.weights import quiet

    if "name" in run.task_settings:
        raise StudyError(f"{where}: a task has no setting 'name'; which one it is, task says")
    try:
        task = load_task(run.task, **run.task_settings)
        if run.start.architecture is not None:
            with quiet():
                model_config(run.start.architecture, run.start, task, None)
    except AttnlabError as error:
        raise StudyError(f"{where}: {error}") from error


def check_distinct(runs: list[PlannedRun]) -> None:
    """Refuse two runs that are one: an arm would be compared with itself."""
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        other = seen.setdefault(run.id, run)
        if other is not run:
            raise StudyError(
                f"'{other.title}' and '{run.title}' are the same run: the same mechanism, model, data and settings; "
                "change or remove one of them"
            )
