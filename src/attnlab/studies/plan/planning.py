"""The runs of a study: one for each phase, size, arm and seed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from attnlab.errors import AttnlabError, StudyError, closest
from attnlab.notebook import Facts, Showable
from attnlab.training import Data, RunSpec
from attnlab.training.spec import DataSource, TaskSettings

from ..file.design import Design
from ..file.overrides import apply_settings


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

    @property
    def title(self) -> str:
        """A name to show."""
        return f"{self.phase}, {self.size}, {self.arm}, seed {self.seed}"

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


def plan(
    study: Design, sources: Mapping[str, str] | None = None, threads: int = 1, plugins: Sequence[str] = (),
    leaking: Collection[str] = (),
) -> list[PlannedRun]:  # fmt: skip
    """Make the runs of a study. sources: paths of its data. plugins: files with the user's own stages.

    leaking: arms with access to future tokens, whose language models are also evaluated without it.
    """
    # Imported here because planned runs are read without torch.
    from .identity import compute_id, hash_inputs, hash_stages

    located = locate_sources(study, sources or {})
    phases = _list_data(study)
    for name, phase_name in phases.items():
        if name not in located:
            hint, known = closest(name, located) or ".", ", ".join(located) or "none"
            raise StudyError(f"phase '{phase_name}' takes the data '{name}'{hint} The study has {known}")
    data_hashes, size_hashes = hash_inputs(study, located, phases)
    planned: dict[tuple[str, str, str, int], PlannedRun] = {}
    shared = {phase.name for phase in study.phases if phase.is_shared}
    for phase, (size_name, size), (arm_name, arm) in product(study.phases, study.sizes.items(), study.arms.items()):
        changed, line = apply_settings(phase, arm), arm.line(size_name)
        data = Data(**dict(located[changed.data]), tokenizer=size.tokenizer)
        settings = {name: getattr(changed, name) for name in TaskSettings.model_fields}
        settings["project"] = changed.project or study.name
        spec = RunSpec(start=size.start(arm.config, line), data=data, **settings)
        hashes = {**data_hashes[changed.data], **size_hashes[size_name], **hash_stages(line, plugins)}
        if arm_name in leaking and spec.task.lower() == "clm":
            spec = spec.replace(task_settings={**spec.task_settings, "has_leak_free_perplexity": True})
        _check_run(spec, f"phase '{phase.name}', size '{size_name}', arm '{arm_name}'")
        for seed in study.seeds[:1] if phase.is_shared else study.seeds:
            parent = None
            if phase.after is not None:
                first_seed = study.seeds[0] if phase.after in shared else seed
                parent = planned[phase.after, size_name, arm_name, first_seed].id
            run = spec.replace(seed=seed, threads=threads)
            key, id = (phase.name, size_name, arm_name, seed), compute_id(run, parent, hashes)
            planned[key] = PlannedRun(id, arm_name, size_name, phase.name, seed, run, parent)
    runs: dict[str, PlannedRun] = {}
    for planned_run in planned.values():
        # Two equal runs would compare an arm with itself.
        if (other := runs.setdefault(planned_run.id, planned_run)) is not planned_run:
            raise StudyError(
                f"'{other.title}' and '{planned_run.title}' are the same run: the same mechanism, model, data and "
                "settings; change or remove one of them"
            )
    return list(runs.values())


def hash_data(study: Design, sources: Mapping[str, str] | None = None) -> dict[str, dict[str, str]]:
    """Return the hashes of the data of a study, by name and split."""
    from .identity import hash_source

    located = locate_sources(study, sources or {})
    return {name: hash_source(located[name]) for name in _list_data(study)}


def locate_sources(study: Design, given: Mapping[str, str]) -> dict[str, DataSource]:
    """Return the data of a study, with the paths that were given for it."""
    located = dict(study.data)
    wanted = {*located, *_list_data(study)}
    for name, place in given.items():
        base, _, part = (name, "", "") if name in wanted else name.rpartition(".")
        if base not in wanted or part not in ("", "train", "dev"):
            hint = closest(name, wanted) or "."
            raise StudyError(
                f"--data takes name=PATH, name.train=PATH or name.dev=PATH, and the study takes no data called "
                f"'{name}'{hint} It takes {', '.join(sorted(wanted))}"
            )
        old = located.get(base)
        changed = {part: place} if part else {"train": place, "dev": None}
        located[base] = DataSource(train=place) if old is None else old.model_copy(update=changed)
    return located


def _list_data(study: Design) -> dict[str, str]:
    """Return the names of the data of a study, each with the first phase that reads it."""
    phases: dict[str, str] = {}
    for phase in study.phases:
        for changed in (phase, *(apply_settings(phase, arm) for arm in study.arms.values())):
            phases.setdefault(changed.data, phase.name)
    return phases


def _check_run(run: RunSpec, where: str) -> None:
    """Refuse a task, an architecture or settings with which no run could begin."""
    from attnlab.tasks import load as load_task
    from attnlab.training.job.weights import make_config, silence_transformers

    if "name" in run.task_settings:
        raise StudyError(f"{where}: a task has no setting 'name'; give it as task")
    try:
        task = load_task(run.task, **run.task_settings)
        if run.start.architecture is not None:
            with silence_transformers():
                make_config(run.start.architecture, run.start, task, None)
    except AttnlabError as error:
        raise StudyError(f"{where}: {error}") from error
