"""The runs of a study: one for each stage, size, arm and seed, with an id made of all that determines its result."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab.data import open_source
from attnlab.errors import StudyError
from attnlab.training import Data, Optimizer, Run, Schedule, Settings, Start, Tuning, Watching
from attnlab.training import Stage as TrainingStage

from .design import Arm, Design, Size, Source, Stage
from .text import assign

FORMAT = 1
"""Raised where the same settings give other results: runs of another format are other runs."""


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


def plan(study: Design, sources: Mapping[str, str] | None = None, threads: int = 1) -> list[PlannedRun]:
    """Make the runs of a study; `sources` says where data is that the study names."""
    found = placed_sources(study, sources or {})
    hashes = {name: hash_of_source(source) for name, source in found.items()}
    planned: dict[tuple[str, str, str, int], PlannedRun] = {}
    for stage in study.stages:
        if stage.data not in found:
            known = ", ".join(found) or "none"
            raise StudyError(f"stage '{stage.name}' takes the data '{stage.data}', and the study has {known}")
        for size_name, size in study.sizes.items():
            for arm_name, arm in study.arms.items():
                for seed in study.seeds[:1] if stage.is_shared else study.seeds:
                    parent = parent_of(study, stage, planned, (size_name, arm_name, seed))
                    run = make_run(with_settings(stage, arm), arm, size, found[stage.data], seed)
                    run = dataclasses.replace(run, threads=threads)
                    own = id_of(run, parent, hashes[stage.data])
                    key = (stage.name, size_name, arm_name, seed)
                    planned[key] = PlannedRun(own, arm_name, size_name, stage.name, seed, run, parent)
    check_distinct(list(planned.values()))
    return list(planned.values())


def placed_sources(study: Design, given: Mapping[str, str]) -> dict[str, Source]:
    """Return the data of a study, with the places that were given for it."""
    found = dict(study.data)
    for name, place in given.items():
        base, _, part = name.partition(".")
        if part not in ("", "train", "dev"):
            raise StudyError(f"--data takes name=PATH, name.train=PATH or name.dev=PATH, not '{name}'")
        old = found.get(base)
        changed = {"train": place, "dev": None} if not part else {part: place}
        found[base] = Source(train=place) if old is None else old.model_copy(update=changed)
    return found


def hash_of_source(source: Source) -> dict[str, str]:
    """Return the hashes of what a source holds, so that other content under the same name is another run."""
    hashes = {}
    for split, name in (("train", source.train), ("dev", source.dev)):
        if name is not None:
            has_splits = name.startswith(("embedded:", "hf:")) or Path(name).expanduser().is_dir()
            hashes[split] = open_source(name, split=split if has_splits else None).hash
    return hashes


def parent_of(
    study: Design, stage: Stage, planned: Mapping[tuple[str, str, str, int], PlannedRun], key: tuple[str, str, int]
) -> str | None:
    """Return the run that a run comes after."""
    if stage.after is None:
        return None
    before = next(one for one in study.stages if one.name == stage.after)
    size, arm, seed = key
    return planned[stage.after, size, arm, study.seeds[0] if before.is_shared else seed].id


def with_settings(stage: Stage, arm: Arm) -> Stage:
    """Return a stage with the settings of an arm: by path in any stage, or behind `stages.NAME.` in one."""
    content = stage.model_dump(mode="python")
    for where, value in arm.set.items():
        own = where
        if where.startswith("stages."):
            _, name, own = where.split(".", 2)
            if name != stage.name:
                continue
        if not own.startswith("config."):
            assign(content, own, value, f"arm with '{arm.mechanism}'")
    return Stage.model_validate(content)


def make_run(stage: Stage, arm: Arm, size: Size, source: Source, seed: int) -> Run:
    """Make the run of a stage, an arm, a size and a seed."""
    own = {where.removeprefix("config."): value for where, value in arm.set.items() if where.startswith("config.")}
    start = Start(size.architecture, size.checkpoint, {**size.config, **own}, arm.mechanism)
    tuning = stage.tuning.model_dump()
    settings = Settings(
        stages=tuple(TrainingStage(**phase.model_dump()) for phase in stage.phases),
        seed=seed,
        optimizer=Optimizer(**stage.optimizer.model_dump()),
        schedule=Schedule(**stage.schedule.model_dump()),
        tuning=Tuning(**{**tuning, "targets": tuple(tuning["targets"])}),
        clip=stage.clip,
        precision=stage.precision,
    )
    watching = Watching(
        evaluate_every=stage.evaluate_every, checkpoint_every=stage.checkpoint_every, trace_every=stage.trace_every
    )
    data = Data(**source.model_dump(), tokenizer=size.tokenizer)
    return Run(stage.task, start, data, stage.task_settings, settings, watching)


def id_of(run: Run, parent: str | None, hashes: Mapping[str, str]) -> str:
    """Return the id of a run: a hash of all that determines its result, and not of what it is called."""
    config: dict[str, Any] = run.config
    for name in ("train", "dev"):
        config["data"].pop(name)
    content = [FORMAT, config, run.watching.evaluate_every, parent, dict(hashes)]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def check_distinct(runs: list[PlannedRun]) -> None:
    """Refuse two arms that are one: they would be compared with themselves."""
    seen: dict[str, PlannedRun] = {}
    for run in runs:
        other = seen.setdefault(run.id, run)
        if other is not run:
            raise StudyError(
                f"the arms '{other.arm}' and '{run.arm}' are the same in stage '{run.stage}': the same mechanism and "
                "settings; change or remove one of them"
            )
