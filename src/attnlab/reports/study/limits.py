"""The limitations of a study: sentences derived from its design and its runs."""

import json
import shlex
import tomllib
from collections.abc import Iterator, Sequence

from attnlab.statistics.formatting import show
from attnlab.statistics.stability import MIN_SEEDS_FOR_SPREAD
from attnlab.statistics.verdict import MIN_SEEDS
from attnlab.studies.answers.study_folder import FILE, Record

from .cells import get_fair_comparison
from .results import PhaseResults, describe_busy

PAPER = "paper"
"""The budget for publication."""


def list_limits(record: Record, places: Sequence[PhaseResults]) -> list[str]:
    """Return all limitations."""
    return [
        *_limit_extent(record), *_limit_sharing(record), *_limit_budget(record), *_limit_parameters(places),
        *_limit_settings(record), *_limit_pairs(places), *_limit_figures(record, places), *_limit_lost(places),
        *_limit_times(places),
    ]  # fmt: skip


def _limit_extent(record: Record) -> Iterator[str]:
    num = len(record.design.seeds)
    if num < MIN_SEEDS:
        yield f"{num} seed{'s' if num > 1 else ''} per arm: the spread is almost unknown, so there is no verdict."
    elif num < MIN_SEEDS_FOR_SPREAD:
        yield f"{num} seeds per arm are too few for stability: a test of spread needs {MIN_SEEDS_FOR_SPREAD}."
    else:
        yield f"{num} seeds per arm: differences much smaller than the interval's width are not detected."
    sizes = ", ".join(record.design.sizes)
    others = "sequence lengths, lengths of training and tokenizers"
    if len(record.design.sizes) == 1:
        yield f"One model size, {sizes}: the results may not hold for other sizes, {others}."
    else:
        yield f"The sizes {sizes}: the results may not hold for other sizes, {others}."
    names = list(dict.fromkeys(phase.data for phase in record.design.phases if phase.smallest is not None))
    if len(names) == 1:
        yield f"The verdicts are about one dataset, {names[0]}; they may differ on others."


def _limit_sharing(record: Record) -> Iterator[str]:
    for phase in record.design.phases:
        if phase.is_shared:
            yield (
                f"'{phase.name}' was trained once per arm: seeds vary only later phases, and the randomness of "
                "that one training is in every difference."
            )
    for name, size in record.design.sizes.items():
        if size.checkpoint is not None:
            yield f"Size {name} starts from one checkpoint: seeds do not vary its pretraining."


def _limit_budget(record: Record) -> Iterator[str]:
    file = record.folder / FILE
    try:
        budgets = tomllib.loads(file.read_text(encoding="utf-8")).get("budgets", {}) if file.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        yield f"The {FILE} of this folder cannot be read, so its budgets are unknown."
        return
    words = shlex.split(str(record.starts[-1].get("command", ""))) if record.starts else []
    taken = words[words.index("--budget") + 1] if "--budget" in words[:-1] else None
    if PAPER in budgets and taken != PAPER:
        budget = f"the budget '{taken}'" if taken else "no budget of the file"
        yield f"It was run with {budget}, not with '{PAPER}': an arm that learns slowly may lead after more training."


def _limit_parameters(places: Sequence[PhaseResults]) -> Iterator[str]:
    for place in places:
        base = next(row.count_parameters("total") for row in place.rows if row.is_baseline)
        others = [
            f"{row.arm} ({count - base:+,})".replace("-", "−") for row in place.rows
            if base is not None and (count := row.count_parameters("total")) is not None and count != base
        ]  # fmt: skip
        if others:
            yield (
                f"{place.title}: the baseline has {base:,} parameters, and others have {', '.join(others)}: more "
                "parameters may help by themselves."
            )


def _limit_settings(record: Record) -> Iterator[str]:
    for name, arm in record.design.arms.items():
        if arm.set:
            changes = ", ".join(f"{path} = {value}" for path, value in arm.set.items())
            yield f"{name} differs in its settings as well ({changes}): its result is that of both together."
    if record.design.search is not None:
        tuned = " and ".join(record.design.search.over)
        yield f"Only {tuned} was tuned for each arm: others were not, which may favour the baseline."
    elif len({json.dumps(dict(arm.set), sort_keys=True) for arm in record.design.arms.values()}) == 1:
        yield "All arms have the same settings: none was tuned separately, which may favour the baseline."


def _limit_pairs(places: Sequence[PhaseResults]) -> Iterator[str]:
    for place in places:
        shown = [
            f"{row.arm} {show(comparison.rho)}"
            for row in place.rows if (comparison := get_fair_comparison(row)) is not None and comparison.data.paired
        ]  # fmt: skip
        if shown:
            yield (
                f"{place.title}: the correlation of paired seeds with the baseline is {', '.join(shown)}. Near 1, "
                "pairing reduces the variance of a difference; near 0 or below it does not."
            )


def _limit_figures(record: Record, places: Sequence[PhaseResults]) -> Iterator[str]:
    decided = [f"{place.figure} in {place.title}" for place in places if place.smallest is not None and place.figure]
    if decided:
        yield f"Verdicts are about {', '.join(decided)}. Other figures and curves were not tested."
    looks = record.design.looks
    if looks is not None and looks != "open":
        yield f"Looks were declared at {', '.join(map(str, looks))} seeds; a look at any other number does not count."


def _limit_lost(places: Sequence[PhaseResults]) -> Iterator[str]:
    lost = [
        f"{row.arm} {row.num_lost} of {len(row.statuses)}" for place in places for row in place.rows if row.num_lost
    ]
    if lost:
        yield f"Means do not include runs that failed or diverged: {', '.join(lost)}."


def _limit_times(places: Sequence[PhaseResults]) -> Iterator[str]:
    for place in places:
        if busy := describe_busy(place.rows):
            yield f"{place.title}: {busy}."
