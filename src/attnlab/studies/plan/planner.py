"""Plans the runs of a study: one for each phase, size, arm and seed, and the trials of its search."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from attnlab.errors import AttnlabError, StudyError, closest
from attnlab.tasks.scores import LOG_FIGURES
from attnlab.training import Data, RunSpec
from attnlab.training.spec import DataSource, TaskSettings

from ..file.design import Arm, Design, Phase, Size
from ..file.overrides import apply_settings, apply_values, select_grid
from .matching import Matching
from .planning import PlannedRun, list_data, locate_sources
from .search import ArmSearch, Scores, Trial, Values, count_trials, derive_seed, hash_seed, search_together

NO_TRIAL = "none of its trials ended with a score"


@dataclass(frozen=True)
class _Cell:
    """The runs of one phase, size and arm, which differ in their seed and in what a search chooses."""

    phase: Phase
    size_name: str
    size: Size
    arm_name: str
    arm: Arm
    source: DataSource
    is_leaking: bool
    grid: Mapping[str, Sequence[Any]]
    """The values to try; empty without a search."""
    hashes: Mapping[str, str]
    trial_hashes: Mapping[str, str]

    @property
    def place(self) -> tuple[str, str, str]:
        """Phase, size and arm."""
        return self.phase.name, self.size_name, self.arm_name

    def make(self, phase: Phase, is_trial: bool) -> RunSpec:
        """Make a run of the phase with other settings."""
        is_best = phase.figure_at == "best" and not is_trial
        source = self.source if is_best else choose_data(self.source, is_trial)
        data = Data(**dict(source), tokenizer=self.size.tokenizer)
        settings = {name: getattr(phase, name) for name in TaskSettings.model_fields}
        settings["figure_at"] = "best" if is_best else "last"  # a trial is evaluated on the tuning data itself
        run = RunSpec(start=self.size.start(self.arm.config, self.arm.line(self.size_name)), data=data, **settings)
        if self.is_leaking and run.task.lower() == "clm":
            run = run.replace(task_settings={**run.task_settings, "has_leak_free_perplexity": True})
        return run


class Planner:
    """Plans the runs of a study: at once without a search, otherwise those that the scores of trials allow."""

    def __init__(
        self, study: Design, sources: Mapping[str, str] | None = None, threads: int = 1, plugins: Sequence[str] = (),
        leaking: Collection[str] = (), trackers: Sequence[str] = (), matching: Matching | None = None,
    ) -> None:  # fmt: skip
        """sources: paths of its data. plugins: files with the user's own stages. matching: what makes arms equal.

        leaking: arms with access to future tokens, whose language models are also evaluated without it. trackers: of
        all runs, in place of those of their phase.
        """
        self.study, self.threads, self.trackers = study, threads, tuple(trackers)
        self.matching = Matching() if matching is None else matching
        located = locate_sources(study, sources or {})
        phases = list_data(study)
        for name, phase_name in phases.items():
            if name not in located:
                hint, known = closest(name, located) or ".", ", ".join(located) or "none"
                raise StudyError(f"phase '{phase_name}' takes the data '{name}'{hint} The study has {known}")
        self._cells = [*_list_cells(study, located, phases, plugins, leaking, self.matching)]
        self._runs: dict[tuple[Any, ...], PlannedRun] = {}
        """Planned runs by what they are for: planning again after a trial makes no run anew."""

    def count_runs(self, skipped: Collection[str] = ()) -> int:
        """Return the number of runs without trials, and without the arms that are skipped."""
        cells = [cell for cell in self._cells if cell.arm_name not in skipped]
        return sum(1 if cell.phase.is_shared else len(self.study.seeds) for cell in cells)

    @property
    def num_trials(self) -> int:
        """The number of trials, without extensions of a grid."""
        search = self.study.search
        if search is None:
            return 0
        once = search.repeat == "once"
        times = [1 if once or cell.phase.is_shared else len(self.study.seeds) for cell in self._cells if cell.grid]
        grids = [cell.grid for cell in self._cells if cell.grid]
        return sum(time * count_trials(search, grid) for time, grid in zip(times, grids, strict=True))

    def list_runs(self, scores: Scores | None, skipped: Collection[str] = ()) -> list[PlannedRun]:
        """List the trials and runs that can be planned; scores: of the trials that have ended. skipped: arms.

        Without scores, the first trial of each counts as the best, to count and to estimate.
        """
        runs: dict[str, PlannedRun] = {}
        ready: dict[tuple[Any, ...], PlannedRun] = {}
        for (phase, seed), grouped in self._group_cells():
            cells = [cell for cell in grouped if cell.arm_name not in skipped]
            parents: dict[str, PlannedRun] = {}
            if phase.after is not None:
                found = {cell.arm_name: ready.get((phase.after, *cell.place[1:], seed)) for cell in cells}
                parents = {arm: parent for arm, parent in found.items() if parent is not None}
                cells = [cell for cell in cells if cell.arm_name in parents]
            for cell, trials, chosen in self._search(cells, seed, parents, scores):
                for trial in trials:
                    _add_run(runs, trial)
                if chosen is not None:
                    run = self._make_run(cell, seed, parents.get(cell.arm_name), chosen)
                    _add_run(runs, run)
                    seeds = self.study.seeds if phase.is_shared else [seed]
                    ready.update({(*cell.place, each): run for each in seeds})
        order = {cell.place: number for number, cell in enumerate(self._cells)}
        return sorted(runs.values(), key=lambda run: order[run.phase, run.size, run.arm])

    def _group_cells(self) -> Iterator[tuple[tuple[Phase, int], list[_Cell]]]:
        """Yield the cells of each phase and size, once for every seed, in the order of the study."""
        places = dict.fromkeys((cell.phase.name, cell.size_name) for cell in self._cells)
        for place in places:
            cells = [cell for cell in self._cells if cell.place[:2] == place]
            phase = next(phase for phase in self.study.phases if phase.name == place[0])
            for seed in self.study.seeds[:1] if phase.is_shared else self.study.seeds:
                yield (phase, seed), cells

    def _search(
        self, cells: Sequence[_Cell], seed: int, parents: Mapping[str, PlannedRun], scores: Scores | None
    ) -> Iterator[tuple[_Cell, list[PlannedRun], Values | None]]:
        """Yield the trials of each arm and what they chose; None while trials have not ended."""
        search, searches = self.study.search, dict[str, ArmSearch]()
        by_arm = {cell.arm_name: cell for cell in cells}
        for arm, cell in by_arm.items():
            if search is None or not cell.grid:
                yield cell, [], {}
                continue
            parent = parents.get(arm)
            if search.repeat == "once" and parent is not None:  # all seeds have the trials of the first
                parent = self._runs["run", cell.phase.after, *cell.place[1:], self.study.seeds[0]]
            find = partial(self._make_trials, cell, parent)
            grid = {where: list(values) for where, values in cell.grid.items()}
            searches[arm] = ArmSearch(grid, search, None if search.repeat == "once" else seed, find)
        for arm, trials, chosen in search_together(searches, scores):
            yield by_arm[arm], [run for trial in trials for run in searches[arm].find_runs(trial)], chosen

    def _make_trials(self, cell: _Cell, parent: PlannedRun | None, trial: Trial) -> list[PlannedRun]:
        num = 1 if self.study.search is None else self.study.search.seeds_per_trial
        key = ("trial", *cell.place, trial.seed, trial.point, trial.share)
        for number in range(num):
            if (*key, number) not in self._runs:
                phase = shorten(apply_values(cell.phase, trial.values), trial.share)
                seed = derive_seed(self._choose_seed(cell, trial.seed), number, self.study.seeds)
                run = self._plan(cell, cell.make(phase, True).replace(seed=seed), seed, parent, cell.trial_hashes)
                self._runs[*key, number] = replace(run, trial=trial)
        return [self._runs[*key, number] for number in range(num)]

    def _make_run(self, cell: _Cell, seed: int, parent: PlannedRun | None, chosen: Values) -> PlannedRun:
        key = ("run", *cell.place, seed)
        obstacle = NO_TRIAL if cell.grid and not chosen else ""
        values = chosen or {where: grid[0] for where, grid in cell.grid.items()}
        if key not in self._runs or (self._runs[key].chosen, self._runs[key].obstacle) != (values, obstacle):
            spec = cell.make(apply_values(cell.phase, values), False).replace(seed=self._choose_seed(cell, seed))
            run = self._plan(cell, spec, seed, parent, cell.hashes)
            self._runs[key] = replace(run, chosen=values, obstacle=obstacle)
        return self._runs[key]

    def _choose_seed(self, cell: _Cell, seed: int | None) -> Any:
        """Return the seed that a run trains with: that of the study, or another one for the baseline's second arm."""
        if not self.study.is_aa(cell.arm_name):
            return seed
        return hash_seed(f"aa of seed {seed}", self.study.seeds)

    def _plan(
        self, cell: _Cell, run: RunSpec, seed: int, parent: PlannedRun | None, hashes: Mapping[str, str]
    ) -> PlannedRun:
        from .identity import compute_id

        run = run.replace(
            threads=self.threads, project=run.project or self.study.name,
            trackers=self.trackers or run.trackers,
        )  # fmt: skip
        origin = None if parent is None else parent.id
        phase, size, arm = cell.place
        return PlannedRun(compute_id(run, origin, hashes), arm, size, phase, seed, run, origin)


def _add_run(runs: dict[str, PlannedRun], run: PlannedRun) -> None:
    other = runs.setdefault(run.id, run)
    # A short trial may be the same in two rungs of a search; two equal runs would compare an arm with itself.
    if other is not run and not (other.is_trial and run.is_trial and other.arm == run.arm):
        raise StudyError(
            f"'{other.title}' and '{run.title}' are the same run: the same mechanism, model, data and settings; "
            "change or remove one of them"
        )


def plan(
    study: Design, sources: Mapping[str, str] | None = None, threads: int = 1, plugins: Sequence[str] = (),
    leaking: Collection[str] = (),
) -> list[PlannedRun]:  # fmt: skip
    """List all runs of a study; with a search, as if the first trial of each were the best (see `Planner`)."""
    return Planner(study, sources, threads, plugins, leaking).list_runs(None)


def _list_cells(
    study: Design, located: Mapping[str, DataSource], phases: Mapping[str, str], plugins: Sequence[str],
    leaking: Collection[str], matching: Matching,
) -> Iterator[_Cell]:  # fmt: skip
    # Imported here because planned runs are read without torch.
    from .identity import hash_inputs, hash_stages

    data_hashes, size_hashes = hash_inputs(study, located, phases)
    for phase, (size_name, size), (arm_name, arm) in product(study.phases, study.sizes.items(), study.arms.items()):
        grid = select_grid(study, phase, arm)
        changed, arm = matching.apply(apply_settings(phase, arm), arm, (phase.name, size_name, arm_name))
        source, files = located[changed.data], data_hashes[changed.data]
        if grid or changed.figure_at == "best":
            check_tuning_data(source, files, changed.data, "a search" if grid else 'figure_at = "best"')
        hashes = {**size_hashes[size_name], **hash_stages(arm.line(size_name), plugins)}
        without_tune = {part: value for part, value in files.items() if part != "tune"}
        of_run = files if changed.figure_at == "best" else without_tune
        of_trial = {**without_tune, "dev": files.get("tune", files["train"])}
        cell = _Cell(
            changed, size_name, size, arm_name, arm, source, arm_name in leaking, grid, {**of_run, **hashes},
            {**of_trial, **hashes},
        )  # fmt: skip
        where = f"phase '{phase.name}', size '{size_name}', arm '{arm_name}'"
        _check_run(cell.make(changed, False), where, phase.target)
        yield cell


def choose_data(source: DataSource, is_trial: bool) -> DataSource:
    """Return what a run or a trial reads of a source."""
    if not is_trial:
        return source.replace(tune=None, num_tune=None)
    return source.replace(dev=source.tune, tune=None, num_dev=None if source.num_tune is not None else source.num_dev)


def check_tuning_data(source: DataSource, hashes: Mapping[str, str], name: str, what: str = "a search") -> None:
    """Refuse data without a part of its own for tuning, or whose part is what the verdict is measured on."""
    require_tuning_data(source, name, what)
    if source.tune is not None and hashes["tune"] in (hashes.get("dev"), hashes["train"]):
        other = "train" if hashes["tune"] == hashes["train"] else "dev"
        why = "what is chosen on it would look better than it is" if other == "dev" else "trials train on it"
        raise StudyError(f"data '{name}': tune has the content of {other}, and {why}; give tune other examples")


def require_tuning_data(source: DataSource, name: str, what: str) -> None:
    """Refuse data that names no part for tuning."""
    if source.tune is None and source.num_tune is None:
        raise StudyError(
            f"{what} needs data that neither training nor the verdict uses: give [data.{name}] tune = SOURCE, or "
            "num_tune = N to tune on the last N training examples"
        )


def check_named_tuning_data(study: Design) -> None:
    """Refuse a study that names no tuning data where its runs need some; the data itself is not read."""
    for phase, arm in product(study.phases, study.arms.values()):
        changed, grid = apply_settings(phase, arm), select_grid(study, phase, arm)
        if changed.data in study.data and (grid or changed.figure_at == "best"):
            what = "a search" if grid else 'figure_at = "best"'
            require_tuning_data(study.data[changed.data], changed.data, what)


def shorten(phase: Phase, share: Fraction) -> Phase:
    """Return a phase with a share of its steps."""
    if share == 1:
        return phase
    segments = [
        segment.replace(steps=max(1, round(segment.steps * share))) if segment.steps is not None
        else segment.replace(epochs=float((segment.epochs or 0) * share))
        for segment in phase.segments
    ]  # fmt: skip
    return phase.replace(segments=tuple(segments))


def _check_run(run: RunSpec, where: str, target: float | None) -> None:
    """Refuse a task, an architecture or settings with which no run could begin, and a target no figure can have."""
    from attnlab.tasks import load as load_task
    from attnlab.training.job.weights import make_config, silence_transformers

    if "name" in run.task_settings:
        raise StudyError(f"{where}: a task has no setting 'name'; give it as task")
    try:
        task = load_task(run.task, **run.task_settings)
        if target is not None and target <= 0 and task.primary in LOG_FIGURES:
            raise StudyError(f"target = {target:g}: {task.primary} is always above 0")
        if run.start.architecture is not None:
            with silence_transformers():
                make_config(run.start.architecture, run.start, task, None)
    except AttnlabError as error:
        raise StudyError(f"{where}: {error}") from error
