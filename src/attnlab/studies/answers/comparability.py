"""What makes results from two places comparable: data, code, seeds, settings and evaluation set, where recorded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scipy.special import bdtr

from attnlab.statistics import check_pairing

from ..integrity import Cell
from .result_source import Facts, ResultSource, RunKey
from .run_table import keep_common

EVALUATION = "evaluat"
"""In the name of the hash of a run's evaluation set."""
MAX_SHOWN = 12


@dataclass(frozen=True)
class SelectedResults:
    """The cells of a source that are compared, under its label as arm, and the run that each comes from."""

    source: ResultSource
    label: str
    cells: tuple[Cell, ...]
    runs: Mapping[RunKey, RunKey]
    """By group, metric and seed: the arm, group and seed in the source."""

    @property
    def arm_by_group(self) -> dict[str, str]:
        """The arm of the source that is compared in each group."""
        return {key[0]: run[0] for key, run in self.runs.items()}


def _pair_runs(first: SelectedResults, other: SelectedResults) -> Iterator[tuple[str, RunKey, RunKey]]:
    """Yield the runs of two sources that have the same group, metric and seed."""
    for key, run in first.runs.items():
        if key in other.runs:
            yield key[2], run, other.runs[key]


def are_pairs(first: SelectedResults, other: SelectedResults) -> bool:
    """Tell whether both record that runs of the same seed share initial weights, batches and evaluation set."""
    if first.runs.keys() != other.runs.keys():
        return False
    ours, theirs = {}, {}
    for number, (_, run, run_of_other) in enumerate(_pair_runs(first, other)):
        one, two = first.source.hashes.get(run, {}), other.source.hashes.get(run_of_other, {})
        if "the start of the weights" not in one:
            return False
        ours[str(number)] = {what: keep_common(one[what], two.get(what, {})) for what in one}
        theirs[str(number)] = {what: keep_common(two[what], one.get(what, {})) for what in two}
    return check_pairing(ours, theirs).is_paired


def list_obstacles(first: SelectedResults, other: SelectedResults) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield why a source cannot be compared, by its label and group: other examples, or an arm that leaks."""
    common = _find_obstacle(first, other)
    for group, arm in other.arm_by_group.items():
        barred = first.source.obstacles.get(first.arm_by_group.get(group, "")) or other.source.obstacles.get(arm)
        if common or barred:
            yield (other.label, group), common or barred or ""


def _find_obstacle(first: SelectedResults, other: SelectedResults) -> str:
    """Return why two sources cannot be compared: they were evaluated on different examples."""
    for _, run, run_of_other in _pair_runs(first, other):
        ours, theirs = first.source.hashes.get(run, {}), other.source.hashes.get(run_of_other, {})
        if any(EVALUATION in what and what in theirs and ours[what] != theirs[what] for what in ours):
            return "evaluated on different examples"
    counts = [{cell.num_examples for cell in one.cells} - {None} for one in (first, other)]
    if counts[0] and counts[1] and counts[0] != counts[1]:
        return "evaluated on different numbers of examples"
    labels = [[run.labels for run in one.source.predictions] for one in (first, other)]
    if labels[0] and labels[1] and labels[0][0] != labels[1][0]:
        return "the labels of their predictions differ"
    return ""


def list_differences(first: SelectedResults, other: SelectedResults) -> Iterator[str]:
    """Yield each difference between two sources that is recorded: data, code, seeds, settings, evaluation."""
    head = f"{first.label} and {other.label}"
    for topic, ours, theirs in (
        ("data", first.source.data, other.source.data), ("code", first.source.versions, other.source.versions),
    ):  # fmt: skip
        if ours and theirs:
            yield from (f"{topic}: {text}" for text in _compare_facts(ours, theirs, topic == "data"))
    seeds = [sorted({cell.seed for cell in one.cells}) for one in (first, other)]
    # Runs without seeds are only numbered.
    if seeds[0] != seeds[1] and first.source.has_seeds and other.source.has_seeds:
        shown = [
            f"{', '.join(of_one[:MAX_SHOWN])} in {one.label}" for of_one, one in zip(seeds, (first, other), strict=True)
        ]
        yield f"seeds: {', '.join(shown)}"
    settings: dict[str, None] = {}
    for _, run, run_of_other in _pair_runs(first, other):
        ours, theirs = first.source.settings.get(run, {}), other.source.settings.get(run_of_other, {})
        if ours and theirs:
            settings |= dict.fromkeys(f"settings: {text}" for text in _compare_facts(ours, theirs, False))
    yield from list(settings)[:MAX_SHOWN]
    if len(settings) > MAX_SHOWN:
        yield f"settings: {len(settings) - MAX_SHOWN} more of {head}"
    if obstacle := _find_obstacle(first, other):
        yield f"evaluation: {head} were {obstacle}" if obstacle.startswith("evaluated") else f"evaluation: {obstacle}"


def _compare_facts(ours: Facts, theirs: Facts, are_hashes: bool) -> Iterator[str]:
    for name in dict.fromkeys([*ours, *theirs]):
        one, two = (facts.get(name, "not recorded") for facts in (ours, theirs))
        if name == "commit":
            one, two = one[:8], two[:8]
        if one != two:
            yield f"{name} differs ({one[:8]}…, {two[:8]}…)" if are_hashes else f"{name} {one} against {two}"


def list_same(selected: Sequence[SelectedResults]) -> Iterator[str]:
    """Yield what all sources are known to share."""
    first = selected[0]
    for topic in ("data", "versions"):
        facts: list[Facts] = [getattr(one.source, topic) for one in selected]
        if facts[0] and all(fact == facts[0] for fact in facts):
            yield "data" if topic == "data" else "code"
    if all(one.runs.keys() == first.runs.keys() and one.source.has_seeds for one in selected):
        yield "seeds"
    scores = [{(cell.group, cell.metric, cell.seed): cell.value for cell in one.cells} for one in selected]
    if all(one == scores[0] for one in scores):
        yield "every score, so these may be copies of the same results"
    else:
        for number, of_source in enumerate(scores):
            labels = [one.label for one, others in zip(selected, scores, strict=True) if others == of_source]
            if len(labels) > 1 and of_source not in scores[:number]:
                yield f"every score of {' and '.join(labels)}, so these may be copies of the same results"
    settings = [{key: one.source.settings.get(run, {}) for key, run in one.runs.items()} for one in selected]
    if all(settings[0].values()) and all(one == settings[0] for one in settings):
        yield "settings"


def list_unknown(selected: Sequence[SelectedResults]) -> Iterator[str]:
    """Yield what each source does not record."""
    for one in selected:
        seeds = ("named",) if one.source.has_seeds else ()
        topics = {"seeds": seeds, "data": one.source.data, "code": one.source.versions, "settings": one.source.settings}
        if missing := [topic for topic, facts in topics.items() if not facts]:
            yield f"{one.label} does not record its {', '.join(missing)}"


def contrast_predictions(first: SelectedResults, other: SelectedResults) -> Iterator[str]:
    """Say on how many examples only one of two single runs is right, and McNemar's exact p."""
    runs = first.source.predictions, other.source.predictions
    if (
        any(len(of_source) != 1 or not of_source[0].labels for of_source in runs)
        or runs[0][0].labels != runs[1][0].labels
    ):
        return
    right = [[given == gold for given, gold in zip(run[0].predictions, run[0].labels, strict=True)] for run in runs]
    ours, theirs = (sum(one and not two for one, two in zip(*pair, strict=True)) for pair in (right, right[::-1]))
    p = min(1.0, 2 * float(bdtr(min(ours, theirs), ours + theirs, 0.5))) if ours + theirs else 1.0
    yield (
        f"of {len(right[0])} examples, only {first.label} is right on {ours} and only {other.label} on {theirs}; p = "
        f"{p:.2g} (exact McNemar test). That is about other examples for these two runs, not about other seeds"
    )
