"""Counts or measures what the runs of a study cost, and chooses the steps or widths with which its arms cost the same.

Runs are built as `--dry-run` builds them. Seconds are measured in rounds over all arms, so that a machine that slows
down does so for every arm, and the median of the rounds counts.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attnlab.errors import StudyError
from attnlab.machine import processor_name
from attnlab.tasks import load as load_task
from attnlab.training import RunSpec
from attnlab.training.job.weights import make_config, silence_transformers

from ..answers.registration import digest
from ..file.design import Design
from ..file.match_consistency import BY_STEPS
from ..ledger.database import Ledger
from ..plan.matching import Matching, Place, RunCount, check_equal, scale_steps
from ..plan.planning import PlannedRun
from ..run.execution import resolve_precision
from ..run.matching_record import find_matching
from ..run.workload import Workload
from .timing import RunTimer, RunTiming

WIDTHS = ("n_inner", "intermediate_size", "ffn_dim", "d_ff", "hidden_dim", "ffn_hidden_size")
"""Names of the width of the feed-forward layers in the configs of transformers."""
KEY_HEADS = "num_key_value_heads"
WIDER = 16
"""A second width that is counted: parameters are linear in it."""
ROUNDS, ROUND_SECONDS = 3, 1.0
"""Rounds in which seconds are measured, and seconds for the updates of one run in one round."""
_COUNTED: dict[str, Matching] = {}
"""What this process has counted, by its basis: a dry run plans a study several times."""


def match_arms(
    design: Design, planned: Sequence[PlannedRun], ledger: Ledger | None, plugins: Sequence[str] = (),
    precision: str | None = None, say: Callable[[str], Any] = str,
) -> Matching:  # fmt: skip
    """Return what the runs of a study cost, as matched: from its ledger, or counted now.

    planned: the runs of the study as if nothing were matched.
    """
    runs = {(run.phase, run.size, run.arm): run for run in reversed(planned) if not run.is_trial}
    basis = digest([design.match, sorted((*place, run.id) for place, run in runs.items())])
    matching = None if ledger is None else find_matching(ledger, basis)
    if matching is None and basis not in _COUNTED:
        with RunTimer(plugins) as timer:
            counting = _Counting(design, runs, {run.id: run for run in planned}, timer, precision, say)
            _COUNTED[basis] = replace(counting.match(), basis=basis)
    return matching or _COUNTED[basis]


@dataclass(frozen=True)
class _Counting:
    """The runs of a study, one of each phase, size and arm, while they are counted."""

    design: Design
    runs: Mapping[Place, PlannedRun]
    by_id: Mapping[str, PlannedRun]
    timer: RunTimer
    precision: str | None
    say: Callable[[str], Any]
    configs: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    """The settings that were chosen for the models of a size and arm, which all phases share."""

    def match(self) -> Matching:
        """Count every run and choose what makes the arms equal; the baseline under other seeds is as the baseline."""
        counts: dict[Place, RunCount] = {}
        for phase, size in dict.fromkeys(place[:2] for place in self.runs):
            arms = [arm for arm in self.design.arms if (phase, size, arm) in self.runs]
            seconds = self._measure(phase, size, arms) if self.design.match == "seconds" else {}
            baseline = self._count((phase, size, self.design.baseline), seconds)
            for arm in arms:
                is_same = arm == self.design.baseline or self.design.is_aa(arm)
                place = phase, size, arm
                counts[place] = baseline if is_same else self._match_arm(place, baseline, seconds)
        return Matching(self.design.match, counts, processor_name() if self.design.match == "seconds" else "")

    def _match_arm(self, place: Place, baseline: RunCount, seconds: Mapping[str, tuple[float, ...]]) -> RunCount:
        match, name = self.design.match, ", ".join(place)
        count = self._count(place, seconds)
        if match in BY_STEPS:
            costs = (baseline.seconds, count.seconds) if match == "seconds" else (baseline.operations, count.operations)
            if len(costs[0]) != len(costs[1]):
                raise StudyError(f"{name}: match needs as many segments as the baseline has; remove those of the arm")
            count = replace(count, num_steps=scale_steps(baseline.num_steps, *costs))
        elif match == "parameters" and not count.config:
            count = self._fit_width(place, baseline, count)
        elif match == "state" and not count.config:
            count = self._fit_key_heads(place, baseline, count)
        if match != "steps":
            check_equal(match, baseline, count, name)
        return count

    def _fit_width(self, place: Place, baseline: RunCount, count: RunCount) -> RunCount:
        """Choose the width of the feed-forward layers with which an arm has as many parameters as the baseline."""
        if count.num_parameters == baseline.num_parameters:
            return count
        config = self._make_config(place)
        name = next((name for name in WIDTHS if hasattr(config, name)), None)
        if name is None:
            raise StudyError(
                f"{', '.join(place)}: the config of '{config.model_type}' has no width of feed-forward layers "
                f'({", ".join(WIDTHS)}) that match = "parameters" could change; choose another architecture'
            )
        width = getattr(config, name) or 4 * config.hidden_size
        wider = self._count_with(place, {name: width + WIDER})
        per_width = (wider.num_parameters - count.num_parameters) / WIDER
        chosen = width + round((baseline.num_parameters - count.num_parameters) / per_width) if per_width > 0 else 0
        return self._count_with(place, {name: chosen}) if chosen >= 1 else count

    def _fit_key_heads(self, place: Place, baseline: RunCount, count: RunCount) -> RunCount:
        """Choose the number of key and value heads with which an arm keeps as much as the baseline, if it has one."""
        if not baseline.state or not count.state:
            raise StudyError(
                f'{", ".join(place)}: match = "state" compares what decoding keeps, and this task does not decode; '
                "choose a causal task, or another match"
            )
        config = self._make_config(place)
        heads = getattr(config, KEY_HEADS, None)
        if count.state == baseline.state or not heads:
            return count
        chosen = round(heads * baseline.state / count.state)
        is_possible = 1 <= chosen != heads and config.num_attention_heads % chosen == 0
        return self._count_with(place, {KEY_HEADS: chosen}) if is_possible else count

    def _make_config(self, place: Place) -> Any:
        spec = self.runs[place].run
        with silence_transformers():
            task = load_task(spec.task, **spec.task_settings)
            return make_config(str(spec.start.architecture), spec.start, task, None)

    def _count_with(self, place: Place, config: dict[str, int]) -> RunCount:
        self.configs[place[1:]] = config
        return self._count(place, {})

    def _count(self, place: Place, seconds: Mapping[str, tuple[float, ...]]) -> RunCount:
        self.say(f"counting the operations of {', '.join(place)}")
        work, _ = self._build(place, 0.0)
        segments, config = work.segments, self.configs.get(place[1:], {})
        return RunCount(
            tuple(segment.num_steps for segment in segments), tuple(segment.operations for segment in segments),
            work.num_parameters, work.state, seconds.get(place[2], ()), config,
        )  # fmt: skip

    def _measure(self, phase: str, size: str, arms: Sequence[str]) -> dict[str, tuple[float, ...]]:
        """Measure the seconds of an update in each segment, in rounds over the arms."""
        rounds: dict[str, list[tuple[float, ...]]] = {arm: [] for arm in arms if not self.design.is_aa(arm)}
        for number in range(ROUNDS):
            for arm, measured in rounds.items():
                self.say(f"timing updates of {phase}, {size}, {arm} ({number + 1} of {ROUNDS})")
                timing = self._build((phase, size, arm), ROUND_SECONDS)[1]
                assert timing is not None, "seconds were given"
                measured.append(timing.updates)
        return {arm: tuple(map(statistics.median, zip(*some, strict=True))) for arm, some in rounds.items()}

    def _build(self, place: Place, seconds: float) -> tuple[Workload, RunTiming | None]:
        run = first = self.runs[place]
        while first.parent is not None:
            first = self.by_id[first.parent]
        spec = resolve_precision(self._configure(run.run, place), self.precision)
        title = ", ".join(place)
        return self.timer.time_run(title, spec, None if first is run else self._configure(first.run, place), seconds)

    def _configure(self, run: RunSpec, place: Place) -> RunSpec:
        start = run.start
        return run.replace(start=start.replace(config={**start.config, **self.configs.get(place[1:], {})}))
