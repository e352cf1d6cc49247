"""Results from several places, compared: which arms, what they share and in what they differ, and the verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attnlab.errors import RequestError, closest

from ..integrity import Cell, Judgement, JudgeOptions, ResultTable, judge
from ..integrity.tables.metrics import read_direction, standardise_metric
from .comparability import (
    SelectedResults,
    are_pairs,
    contrast_predictions,
    list_differences,
    list_obstacles,
    list_same,
    list_unknown,
)
from .result_source import ResultSource


@dataclass(frozen=True)
class CrossComparison:
    """The verdicts, what the sources share, in what they differ, and what is not recorded; each in words.

    compared: each source and its arms. others: arms that are not compared. examples: what predictions show beside that.
    """

    judgement: Judgement
    compared: tuple[str, ...]
    others: tuple[str, ...]
    same: tuple[str, ...]
    different: tuple[str, ...]
    unknown: tuple[str, ...]
    examples: tuple[str, ...]
    is_paired: bool


def compare_sources(
    sources: Sequence[ResultSource], arms: Sequence[str], options: JudgeOptions, metric: str | None = None
) -> CrossComparison:
    """Compare each source with the first. arms: one arm for all sources, or one for each; metric: which one."""
    if options.is_paired:
        _check_seeds(sources)
    chosen = _choose_arms(sources, arms)
    selected = _select(sources, chosen, metric)
    first = selected[0]
    differences = [list(list_differences(first, other)) for other in selected[1:]]
    obstacles = {key: why for other in selected[1:] for key, why in list_obstacles(first, other)}
    is_paired = options.is_paired or all(are_pairs(first, other) for other in selected[1:])
    table = ResultTable(
        " and ".join(one.label for one in selected), (), tuple(cell for one in selected for cell in one.cells),
        first.label, predictions=tuple(
            replace(run, arm=one.label) for one in selected for run in one.source.predictions
        ),
    )  # fmt: skip
    smallest = options.smallest if options.smallest is not None else _find_smallest(sources, table.metrics)
    judgement = judge(table, replace(options, smallest=smallest, is_paired=is_paired, obstacles=obstacles))
    compared = tuple(_describe(one, arm) for one, arm in zip(selected, chosen, strict=True))
    others = dict.fromkeys(
        arm for source, used in zip(sources, chosen, strict=True) for arm in source.arms if arm not in used
    )
    examples = [text for other in selected[1:] for text in contrast_predictions(first, other)]
    return CrossComparison(
        judgement, compared, tuple(others), tuple(list_same(selected)),
        tuple(text for of_pair in differences for text in of_pair), tuple(list_unknown(selected)), tuple(examples),
        is_paired,
    )  # fmt: skip


def _check_seeds(sources: Sequence[ResultSource]) -> None:
    """Refuse pairs of named seeds and of runs that are only numbered; lists are paired by their order."""
    unnamed = [source.name for source in sources if not source.has_seeds]
    if unnamed and len(unnamed) < len(sources):
        raise RequestError(
            f"--paired needs the seed of every run, and {unnamed[0]} does not record its seeds; add a column seed, or "
            "omit --paired"
        )


def _choose_arms(sources: Sequence[ResultSource], arms: Sequence[str]) -> list[list[str]]:
    """Return the arms of each source that are compared."""
    if len(arms) not in (0, 1, len(sources)):
        raise RequestError(
            f"--arm is given {len(arms)} times for {len(sources)} results; give it once, or once for each"
        )
    if arms:
        wanted = list(arms) if len(arms) == len(sources) else [arms[0]] * len(sources)
        for source, arm in zip(sources, wanted, strict=True):
            if arm not in source.arms:
                hint = closest(arm, source.arms) or "."
                raise RequestError(f"{source.name} has no arm '{arm}'{hint} It has {', '.join(source.arms[:12])}")
        return [[arm] for arm in wanted]
    if all(len(source.arms) == 1 for source in sources):
        return [source.arms for source in sources]
    shared = [arm for arm in sources[0].arms if all(arm in source.arms for source in sources)]
    if shared:
        return [shared] * len(sources)
    listed = "; ".join(f"{source.name} has {', '.join(source.arms[:6])}" for source in sources)
    example = " ".join(f"--arm {source.arms[0]}" for source in sources)
    raise RequestError(f"no arm is in all of them: {listed}. Name one of each, such as {example}")


def _select(
    sources: Sequence[ResultSource], arms: Sequence[Sequence[str]], metric: str | None
) -> list[SelectedResults]:
    metrics = _match([source.cells for source in sources], "metric", [source.name for source in sources], metric)
    groups = _match([source.cells for source in sources], "group", [source.name for source in sources], None)
    has_arms, has_groups = len(arms[0]) > 1, len({*groups[0].values()}) > 1
    selected = []
    for n, (source, label) in enumerate(zip(sources, _name_sources(sources), strict=True)):
        cells, runs = [], {}
        last = {(cell.arm, cell.group, cell.metric, cell.seed): cell for cell in _sort_by_step(source.cells)}
        for cell in last.values():
            if cell.arm in arms[n] and cell.metric in metrics[n] and cell.group in groups[n]:
                parts = (cell.arm if has_arms else "", groups[n][cell.group] if has_groups else "")
                group = ", ".join(filter(None, parts))
                moved = replace(cell, arm=label, group=group, metric=metrics[n][cell.metric], step=None)
                cells.append(moved)
                runs[group, moved.metric, cell.seed] = cell.run
        selected.append(SelectedResults(source, label, tuple(cells), runs))
    return selected


def _sort_by_step(cells: Sequence[Cell]) -> list[Cell]:
    return sorted(cells, key=lambda cell: -1.0 if cell.step is None else cell.step)


def _match(
    cells: Sequence[Sequence[Cell]], part: str, names: Sequence[str], wanted: str | None
) -> list[dict[str, str]]:  # fmt: skip
    """Return for each source which of its metrics or groups are compared, and under which name."""
    known = [list(dict.fromkeys(str(getattr(cell, part)) for cell in of_source)) for of_source in cells]
    if wanted is not None:
        return [{_find_name(wanted, values, name): wanted} for name, values in zip(names, known, strict=True)]
    shared = [value for value in known[0] if all(value in values for values in known)]
    if shared:
        return [{value: value for value in shared}] * len(cells)
    # A list of numbers, or a file with one group, has no name for what it holds.
    named = {value for values in known for value in values if value not in ("value", "")}
    if part == "metric" and len({standardise_metric(value) for value in named}) == 1:
        same = [value for values in known for value in values if value in named]
        named = {next((value for value in same if read_direction(value) is not None), same[0])}
    if all(len(values) == 1 for values in known) and (part == "group" or len(named) <= 1):
        return [{values[0]: next(iter(named)) if len(named) == 1 else ""} for values in known]
    listed = "; ".join(
        f"{name} has {', '.join(values[:6]) or 'none'}" for name, values in zip(names, known, strict=True)
    )
    advice = {
        "metric": "Give it one name in all of them; --metric NAME names that of scores without a metric",
        "group": "Give groups that are the same one name in all files, or read tables of different arms as one: "
        "attnlab judge FILE… --map group=COLUMN",
    }
    raise RequestError(f"no {part} is in all of them, so nothing can be compared: {listed}. {advice[part]}")


def _find_name(wanted: str, values: Sequence[str], source: str) -> str:
    """Return the name that a source has for a metric: the same, another of the same metric, or none."""
    same = [value for value in values if standardise_metric(value) == standardise_metric(wanted)]
    if wanted in values or values == ["value"]:
        return wanted if wanted in values else "value"
    if len(same) != 1:
        hint = closest(wanted, values) or "."
        raise RequestError(f"{source} has no metric '{wanted}'{hint} It has {', '.join(values)}")
    return same[0]


def _name_sources(sources: Sequence[ResultSource]) -> list[str]:
    """Return short names that tell the sources apart."""
    names = [source.name.rstrip("/") for source in sources]
    short = [Path(name).name or name for name in names]
    if len(set(short)) == len(short):
        return short
    return names if len(set(names)) == len(names) else [f"{name} ({n})" for n, name in enumerate(names, start=1)]


def _find_smallest(sources: Sequence[ResultSource], metrics: Sequence[str]) -> Mapping[str, float] | None:
    """Return the smallest difference of each metric that studies declared, if they agree."""
    declared = {metric: {source.smallest.get(metric) for source in sources} - {None} for metric in metrics}
    return {
        metric: value for metric, values in declared.items() if len(values) == 1 for value in values if value
    } or None


def _describe(one: SelectedResults, arms: Sequence[str]) -> str:
    seeds = list(dict.fromkeys(cell.seed for cell in one.cells))
    shown = f"{len(seeds)} {'seed' if len(seeds) == 1 else 'seeds'}"
    if any(cell.is_mean for cell in one.cells):
        numbers = dict.fromkeys(str(cell.num_seeds or "an unknown number of") for cell in one.cells)
        shown = f"means over {' or '.join(numbers)} seeds"
    arm = "" if one.source.is_list else f", {'arm' if len(arms) == 1 else 'arms'} {', '.join(arms)}"
    return f"{one.label}: {one.source.kind}{arm}, {shown}"
