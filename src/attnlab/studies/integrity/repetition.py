"""Values that repeat to the last digit: steps without new values, and runs with the values of another run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .coincidence import KINDS, Repeat, Sighting, find_twins, is_beyond_chance, look_up
from .finding import IntegrityFinding, IntegrityKind, list_first
from .table import Cell, ResultTable, show_step

ODDS = 1e-3
"""False-positive rate for a table without repeats."""
FEWEST = 2
"""A step with fewer values is not called one without new values."""


def check_repetition(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Find repeats beyond chance: first whole steps, then all other repeats as one finding."""
    by_step: dict[float | None, list[Sighting]] = {step: [] for step in table.steps}
    for metric in table.metrics:
        for sighting in look_up(table, metric):
            by_step[sighting.cell.step].append(sighting)
    # A test for each step, for all of them, and for twins.
    odds = ODDS / max(1, (len(by_step) + 2) * len(table.metrics) * len(KINDS))
    beyond = {step for step, here in by_step.items() if is_beyond_chance(here, odds)}
    stale = [step for step in by_step if step in beyond and _is_stale(step, by_step[step])]
    for step in stale:
        repeats = [one.repeat for one in by_step[step] if one.repeat is not None]
        parts = [f"{count} repeat {what}" for what, count in _counts(repeats).items()]
        head = f"{show_step(step).capitalize()} holds no new value: of its {len(repeats)} cells, {', '.join(parts)}"
        yield IntegrityFinding(
            IntegrityKind.REPEATED_VALUES,
            f"{head}{_pairs(repeats)}",
            places=_places(repeats),
            data=_data([step], repeats),
        )
    left = {step: here for step, here in by_step.items() if step not in stale}
    everything = [one for here in left.values() for one in here]
    steps = {step for step in left if step in beyond} | {one.cell.step for one in find_twins(everything, odds)}
    if steps or is_beyond_chance(everything, odds):
        # If no single step is beyond chance, all of them together are.
        chosen = [step for step in left if step in steps] or list(left)
        yield _scattered(chosen, [one for step in chosen for one in left[step]])


def _is_stale(step: float | None, here: Sequence[Sighting]) -> bool:
    return step is not None and len(here) >= FEWEST and all(one.repeat is not None for one in here)


def _scattered(steps: list[float | None], here: Sequence[Sighting]) -> IntegrityFinding:
    repeats = [one.repeat for one in here if one.repeat is not None]
    parts = [f"{count} {'repeats' if count == 1 else 'repeat'} {what}" for what, count in _counts(repeats).items()]
    where = f" of {show_step(steps[0])}" if len(steps) == 1 and steps[0] is not None else ""
    head = f"{len(repeats)} of {len(here)} values{where} repeat earlier ones to the last digit: {', '.join(parts)}"
    return IntegrityFinding(
        IntegrityKind.REPEATED_VALUES, f"{head}{_pairs(repeats)}", places=_places(repeats), data=_data(steps, repeats)
    )


def _counts(repeats: Sequence[Repeat]) -> dict[str, int]:
    """Count repeats by their source; those of the same run by step, the latest first."""
    own = [repeat.earlier.step for repeat in repeats if repeat.kind == "own"]
    steps = sorted(set(own), key=lambda step: step or 0.0, reverse=True)
    counts = {f"the same run's {show_step(step)}": own.count(step) for step in steps}
    counts["another seed's value"] = sum(repeat.kind == "seed" for repeat in repeats)
    counts["another arm's value"] = sum(repeat.kind == "arm" for repeat in repeats)
    return {what: count for what, count in counts.items() if count}


def _pairs(repeats: Sequence[Repeat]) -> str:
    """Name the runs that share values, the most frequent first."""
    foreign = Counter((_run(one.cell), _run(one.earlier)) for one in repeats if one.kind != "own")
    shown = [f"{run} has {count} of {other}" for (run, other), count in foreign.most_common()]
    return f" ({list_first(shown, 3)})" if shown else ""


def _run(cell: Cell) -> str:
    return " ".join(filter(None, (cell.arm, cell.group, f"seed {cell.seed}")))


def _places(repeats: Sequence[Repeat]) -> tuple[str, ...]:
    return tuple(repeat.cell.place for repeat in repeats)


def _data(steps: list[float | None], repeats: Sequence[Repeat]) -> dict[str, Any]:
    return {
        "steps": steps,
        "counts": _counts(repeats),
        "repeats": [{"cell": one.cell.place, "repeats": one.earlier.place, "kind": one.kind} for one in repeats],
    }
