"""The limitations of a study: sentences derived from its design and its runs."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Sequence

from attnlab.statistics.formatting import show
from attnlab.statistics.stability import FEWEST
from attnlab.statistics.verdict import FEWEST_SEEDS
from attnlab.studies.answers.study_folder import FILE, Record

from .cells import get_fair_comparison
from .results import PhaseResults

PAPER = "paper"
"""The budget that is meant to be published."""


def list_limits(record: Record, places: Sequence[PhaseResults]) -> list[str]:
    """Return all limitations."""
    return [
        *_limit_seeds(record), *_limit_sizes(record), *_limit_data(record), *_limit_sharing(record),
        *_limit_budget(record), *_limit_parameters(places), *_limit_settings(record), *_limit_pairs(places),
        *_limit_figures(record, places), *_limit_lost(places),
    ]  # fmt: skip


def _limit_seeds(record: Record) -> Iterator[str]:
    """Say what so few seeds leave open."""
    num = len(record.design.seeds)
    if num < FEWEST_SEEDS:
        yield f"{num} seed{'s' if num > 1 else ''} an arm: the spread is as good as unknown, and there is no verdict."
    elif num < FEWEST:
        yield f"{num} seeds an arm say nothing about stability: a test of spread needs {FEWEST}."
    else:
        yield f"{num} seeds an arm: a difference much smaller than the interval's width would not be seen."


def _limit_sizes(record: Record) -> Iterator[str]:
    """Say that other sizes are other questions."""
    sizes = ", ".join(record.design.sizes)
    lengths = "other lengths of text, other lengths of training and other tokenizers"
    if len(record.design.sizes) == 1:
        yield f"One size of model, {sizes}: nothing is said about larger or smaller ones, nor about {lengths}."
    else:
        yield f"The sizes {sizes}: nothing is said about others, nor about {lengths}."


def _limit_data(record: Record) -> Iterator[str]:
    """Say that other data is another question."""
    names = list(dict.fromkeys(phase.data for phase in record.design.phases if phase.smallest is not None))
    if len(names) == 1:
        yield f"The verdicts are about one dataset, {names[0]}; others may turn them round."


def _limit_sharing(record: Record) -> Iterator[str]:
    """Say what seeds do not vary."""
    for phase in record.design.phases:
        if phase.is_shared:
            yield (
                f"'{phase.name}' was trained once an arm: seeds vary what comes after it alone, and the luck of "
                "that one training is in every difference."
            )
    for name, size in record.design.sizes.items():
        if size.checkpoint is not None:
            yield f"Size {name} starts from one checkpoint: seeds vary what is trained here, not its pretraining."


def _limit_budget(record: Record) -> Iterator[str]:
    """Say that a small budget is no paper's."""
    file = record.folder / FILE
    try:
        budgets = tomllib.loads(file.read_text(encoding="utf-8")).get("budgets", {}) if file.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        yield f"The {FILE} of this folder cannot be read, so that its budgets are unknown."
        return
    words = shlex.split(str(record.starts[-1].get("command", ""))) if record.starts else []
    taken = words[words.index("--budget") + 1] if "--budget" in words[:-1] else None
    if PAPER in budgets and taken != PAPER:
        own = f"the budget '{taken}'" if taken else "no budget of the file's"
        yield f"It was run with {own}, not with '{PAPER}': an arm that learns slowly may be ahead with more training."


def _limit_parameters(places: Sequence[PhaseResults]) -> Iterator[str]:
    """Say which arms have other numbers of parameters."""
    for place in places:
        own = next(row.count_parameters("total") for row in place.rows if row.is_baseline)
        others = [
            f"{row.arm} ({count - own:+,})".replace("-", "−") for row in place.rows
            if own is not None and (count := row.count_parameters("total")) is not None and count != own
        ]  # fmt: skip
        if others:
            yield (
                f"{place.title}: the baseline has {own:,} parameters, and others have {', '.join(others)}: more of "
                "them may help by themselves."
            )


def _limit_settings(record: Record) -> Iterator[str]:
    """Say which arms differ in more than their mechanism."""
    for name, arm in record.design.arms.items():
        if arm.set:
            changes = ", ".join(f"{path} = {value}" for path, value in arm.set.items())
            yield f"{name} differs in its settings as well ({changes}): what it shows is of both together."
    if len({tuple(sorted(arm.set)) for arm in record.design.arms.values()}) == 1:
        yield "All arms took the same settings: none was tuned for itself, and what suits the baseline favours it."


def _limit_pairs(places: Sequence[PhaseResults]) -> Iterator[str]:
    """Say what pairing brought."""
    for place in places:
        shown = [
            f"{row.arm} {show(comparison.rho)}"
            for row in place.rows if (comparison := get_fair_comparison(row)) is not None and comparison.data.paired
        ]  # fmt: skip
        if shown:
            yield (
                f"{place.title}: the correlation of paired seeds with the baseline is {', '.join(shown)}. Near 1, "
                "pairing takes luck out of a difference; near 0 or below it takes nothing out."
            )


def _limit_figures(record: Record, places: Sequence[PhaseResults]) -> Iterator[str]:
    """Say which figures decide."""
    decided = [f"{place.figure} in {place.title}" for place in places if place.smallest is not None and place.figure]
    if decided:
        yield f"Verdicts are about {', '.join(decided)}. All other figures and curves were looked at without a test."
    looks = record.design.looks
    if looks is not None and looks != "open":
        yield f"Looks were declared at {', '.join(map(str, looks))} seeds; a look at any other number would not count."


def _limit_lost(places: Sequence[PhaseResults]) -> Iterator[str]:
    """Say that means leave out what failed."""
    lost = [
        f"{row.arm} {row.num_lost} of {len(row.statuses)}" for place in places for row in place.rows if row.num_lost
    ]
    if lost:
        yield f"Runs that failed or diverged have no figure, so that means leave them out: {', '.join(lost)}."
