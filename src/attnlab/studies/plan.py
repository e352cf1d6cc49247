"""The runs of a study: one for each stage, size, arm and seed, with an id made of all that determines its result."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnlab.errors import AttnlabError, StudyError, closest
from attnlab.training import Data, Optimizer, Run, Schedule, Settings, Start, Tuning, Watching
from attnlab.training import Stage as TrainingStage

from .design import Arm, Design, Size, Source, Stage
from .overrides import config_of, with_settings

Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study."""

    id: str
    arm: str
    size: str
    stage: str
    seed: int
    run: Run
    parent: str | None = None
    """The id of the run whose weights this one starts from."""

    @property
    def title(self) -> str:
        """What a person calls it."""
        return f"{self.stage}, {self.size}, {self.arm}, seed {self.seed}"

    def at(self, runs: Path) -> Run:
        """Return the run as it is trained below a folder of runs."""
        if self.parent is None:
            return self.run
        start = dataclasses.replace(self.run.start, architecture=None, checkpoint=str(runs / self.parent), config={})
        data = dataclasses.replace(self.run.data, tokenizer=None)
        return dataclasses.replace(self.run, start=start, data=data)


def plan(
    study: Design, sources: Mapping[str, str] | None = None, threads: int = 1, plugins: Sequence[str] = (),
    leaking: Collection[str] = (),
) -> list[PlannedRun]:  # fmt: skip
    """Make the runs of a study. sources: where data is that it names. plugins: files of the user's own stages.

    leaking: arms that see the future, whose language models are also evaluated on the past alone.
    """
    # Imported here because runs that were planned are read without torch.
    from .identity import contents_of_stages, id_of
    from .presence import contents_of

    found = placed_sources(study, sources or {})
    taken = taken_by(study)
    for name, stage_name in taken.items():
        if name not in found:
            known = ", ".join(found) or "none"
            hint = closest(name, found) or "."
            raise StudyError(f"stage '{stage_name}' takes the data '{name}'{hint} The study has {known}")
    contents, starts = contents_of(study, found, taken)
    planned: dict[Key, PlannedRun] = {}
    for stage in study.stages:
        for size_name, size in study.sizes.items():
            for arm_name, arm in study.arms.items():
                own, line = with_settings(stage, arm), arm.line(size_name)
                made = make_run(own, arm, size, found[own.data], line)
                own_files = contents_of_stages(line, plugins)
                made = with_honest_figure(made) if arm_name in leaking else made
                check_run(made, f"stage '{stage.name}', size '{size_name}', arm '{arm_name}'")
                for seed in study.seeds[:1] if stage.is_shared else study.seeds:
                    key = (stage.name, size_name, arm_name, seed)
                    parent = parent_of(study, stage, planned, key)
                    settings = dataclasses.replace(made.settings, seed=seed)
                    run = dataclasses.replace(made, settings=settings, threads=threads)
                    id = id_of(run, parent, {**contents[own.data], **starts[size_name], **own_files})
                    planned[key] = PlannedRun(id, arm_name, size_name, stage.name, seed, run, parent)
    check_distinct(list(planned.values()))
    return list(planned.values())


def contents_of_study(study: Design, sources: Mapping[str, str] | None = None) -> dict[str, dict[str, str]]:
    """Return the hashes of the data that a study takes, by name and split."""
    from .identity import contents_of_source

    found = placed_sources(study, sources or {})
    return {name: contents_of_source(found[name]) for name in taken_by(study)}


def taken_by(study: Design) -> dict[str, str]:
    """Return the data that a study takes, each with the first stage that does."""
    found: dict[str, str] = {}
    for stage in study.stages:
        for own in (stage, *(with_settings(stage, arm) for arm in study.arms.values())):
            found.setdefault(own.data, stage.name)
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


def parent_of(study: Design, stage: Stage, planned: Mapping[Key, PlannedRun], key: Key) -> str | None:
    """Return the run that a run comes after."""
    if stage.after is None:
        return None
    before = next(one for one in study.stages if one.name == stage.after)
    _, size, arm, seed = key
    return planned[stage.after, size, arm, study.seeds[0] if before.is_shared else seed].id


def make_run(stage: Stage, arm: Arm, size: Size, source: Source, line: str) -> Run:
    """Make the run of a stage, an arm, a size and its mechanism's line; its seed is yet to be set."""
    start = Start(size.architecture, size.checkpoint, {**size.config, **config_of(arm)}, line)
    tuning = stage.tuning.model_dump()
    settings = Settings(
        stages=tuple(TrainingStage(**phase.model_dump()) for phase in stage.phases),
        optimizer=Optimizer(**stage.optimizer.model_dump()),
        schedule=Schedule(**stage.schedule.model_dump()),
        tuning=Tuning(**{**tuning, "targets": tuple(tuning["targets"])}),
        clip=stage.clip,
        precision=stage.precision,
    )
    watching = Watching(
        stage.evaluate_every, stage.checkpoint_every, stage.log_every, stage.trace_every, stage.sample_every,
        tuple(stage.prompts), tuple(stage.sentences), stage.num_tokens, stage.num_scored,
    )  # fmt: skip
    data = Data(**source.model_dump(), tokenizer=size.tokenizer)
    return Run(stage.task, start, data, stage.task_settings, settings, watching)


def with_honest_figure(run: Run) -> Run:
    """Return a run that is evaluated on the past alone as well, where its task has such a figure."""
    if run.task.lower() != "clm":
        return run
    return dataclasses.replace(run, task_settings={**run.task_settings, "is_honest": True})


def check_run(run: Run, where: str) -> None:
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
