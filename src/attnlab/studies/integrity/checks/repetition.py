"""Values that repeat to the last digit: steps without new values, and runs with the values of another run."""

from collections import Counter
from collections.abc import Iterator, Sequence

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.table import Cell, ResultTable, join_words, show_step
from .coincidence import KINDS, Repeat, Sighting, find_repeats, find_twins, is_beyond_chance
from .copied_means import check_copied_means
from .copied_runs import report_copied_runs
from .copied_seeds import report_copied_seeds
from .copied_tasks import find_copied_tasks, split_tasks_from_metrics
from .copies import ColumnCopy, find_copies

ODDS = 1e-3
"""False-positive rate for a table without repeats: half for single values, half for copies of columns."""
MAX_PAIRS = 3
"""Pairs of runs with equal values that are named; of more, all arms are named."""
MAX_COPIES = 4
"""Copies that are described; of more, all arms are named."""
MIN_VALUES = 2
"""A step with fewer values is not called one without new values."""


def check_repetition(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Find repeats beyond chance: whole steps, all other repeats as one finding, and then copies of whole columns."""
    findings = list(_find_repeated_steps(table))
    yield from findings
    known = {place for finding in findings for place in finding.places}
    of_means = list(check_copied_means(table))
    yield from of_means
    known |= {place for finding in of_means for place in finding.places}
    copies = find_copies(split_tasks_from_metrics(table), ODDS / 2)
    copies = [copy for copy in copies if not {cell.place for cell, _ in copy.equals} <= known]
    for is_fault in (True, False):
        of_kind = [copy for copy in copies if copy.is_certain == is_fault]
        if of_kind:
            yield _report_copies(of_kind, is_fault)
    certain = {cell.place for copy in copies if copy.is_certain for cell, _ in copy.equals}
    of_runs = list(report_copied_runs(table, certain | known))
    yield from of_runs
    certain |= {place for finding in of_runs if finding.is_fault for place in finding.places}
    yield from report_copied_seeds(table, certain | known)
    named = {cell.place for copy in copies for cell, _ in copy.equals}
    yield from find_copied_tasks(table, ODDS / 2, named | known)


def _find_repeated_steps(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Find steps without new values, and all other repeats as one finding; a single one is a note."""
    by_step: dict[float | None, list[Sighting]] = {step: [] for step in table.steps}
    for metric in table.metrics:
        for sighting in find_repeats(table, metric):
            by_step[sighting.cell.step].append(sighting)
    # A test for each step, for all of them, and for twins.
    odds = ODDS / 2 / max(1, (len(by_step) + 2) * len(table.metrics) * len(KINDS))
    beyond = {step for step, sightings in by_step.items() if is_beyond_chance(sightings, odds)}
    repeated = {step for step, sightings in by_step.items() if all(sighting.repeat for sighting in sightings)} - {None}
    stale = [step for step in by_step if step in beyond & repeated and len(by_step[step]) >= MIN_VALUES]
    for step in stale:
        num = len(by_step[step])
        yield _report([step], by_step[step], f"{show_step(step).capitalize()} holds no new value: of its {num} cells, ")
    left = {step: sightings for step, sightings in by_step.items() if step not in stale}
    sightings = [sighting for of_step in left.values() for sighting in of_step]
    steps = {step for step in left if step in beyond} | {repeat.cell.step for repeat in find_twins(sightings, odds)}
    if steps or is_beyond_chance(sightings, odds):
        # If no single step is beyond chance, all of them together are.
        chosen = [step for step in left if step in steps] or list(left)
        sightings = [sighting for step in chosen for sighting in left[step]]
        where = f" of {show_step(chosen[0])}" if len(chosen) == 1 and chosen[0] is not None else ""
        num = sum(sighting.repeat is not None for sighting in sightings)
        head = f"{num} of {len(sightings)} values{where} repeat earlier ones to the last digit: "
        yield _report(chosen, sightings, head)


def _report(steps: list[float | None], sightings: Sequence[Sighting], head: str) -> IntegrityFinding:
    repeats = [sighting.repeat for sighting in sightings if sighting.repeat is not None]
    counts = _count_sources(repeats)
    parts = [f"{count} {'repeats' if count == 1 else 'repeat'} {source}" for source, count in counts.items()]
    others = [it for it in repeats if it.kind != "own"]
    foreign = Counter((_name_run(it.cell), _name_run(it.earlier)) for it in others)
    shown = [f"{run} has {count} of {other}" for (run, other), count in foreign.most_common()]
    arms = dict.fromkeys(join_words(it.cell.arm, it.cell.group) for it in others)
    named = f"; all arms with such values: {', '.join(arms)}" if len(shown) > MAX_PAIRS else ""
    pairs = f" ({list_first(shown, MAX_PAIRS)}{named})" if shown else ""
    listed = [{"cell": it.cell.place, "repeats": it.earlier.place, "kind": it.kind} for it in repeats]
    is_single = len(repeats) == 1
    ending = ". One equal value may be a copied cell or a coincidence" if is_single else ""
    return IntegrityFinding(
        IntegrityKind.REPEATED_VALUES,
        f"{head}{', '.join(parts)}{pairs}{ending}",
        is_fault=not is_single,
        places=tuple(repeat.cell.place for repeat in repeats),
        data={"steps": steps, "counts": counts, "repeats": listed},
    )


def _report_copies(copies: Sequence[ColumnCopy], is_fault: bool) -> IntegrityFinding:
    equals = [pair for copy in copies for pair in copy.equals]
    reason = "At this spread and precision, chance produces so many equal values in less than one of 1000 tables"
    if not is_fault:
        reason = "They may be copies, or coincidences of a small evaluation set"
        is_known = all(cell.num_examples for cell, _ in equals)
        reason += "" if is_known else "; --examples N gives its size and may settle it"
    listed = [{"cell": cell.place, "repeats": other.place, "kind": "column"} for cell, other in equals]
    arms = list(dict.fromkeys(column.name for copy in copies for column in (copy.first, copy.second)))
    named = f". All of them: {', '.join(arms)}" if len(copies) > MAX_COPIES else ""
    return IntegrityFinding(
        IntegrityKind.REPEATED_VALUES,
        f"{list_first([copy.sentence for copy in copies], MAX_COPIES)}{named}. {reason}",
        is_fault=is_fault,
        places=tuple(dict.fromkeys(cell.place for cell, _ in equals)),
        data={"steps": list(dict.fromkeys(cell.step for cell, _ in equals)), "repeats": listed},
    )


def _count_sources(repeats: Sequence[Repeat]) -> dict[str, int]:
    """Count repeats by their source; those of the same run by step, the latest first."""
    own = [repeat.earlier.step for repeat in repeats if repeat.kind == "own"]
    steps = sorted(set(own), key=lambda step: step or 0.0, reverse=True)
    counts = {f"the same run's {show_step(step)}": own.count(step) for step in steps}
    counts["another seed's value"] = sum(repeat.kind == "seed" for repeat in repeats)
    counts["another arm's value"] = sum(repeat.kind == "arm" for repeat in repeats)
    return {source: count for source, count in counts.items() if count}


def _name_run(cell: Cell) -> str:
    return join_words(cell.arm, cell.group, f"seed {cell.seed}")
