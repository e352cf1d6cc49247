"""Tables of means: what they lack for a verdict, and Welch's t where mean, SD and number of seeds are known."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from attnlab.statistics import Comparison, Question, Summary, compare_summaries

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.table import Cell, ResultTable

NO_NUMBER = "the number of seeds is not given"
NO_SPREAD = "the SD over seeds is not given"


def find_missing_spread(cells: Sequence[Cell]) -> str:
    """Say what is missing to compare means; empty if nothing is, or if the cells are scores of single runs."""
    if not any(cell.is_mean for cell in cells):
        return ""
    if any(cell.sd is None and (cell.num_seeds or 2) > 1 for cell in cells):
        return NO_SPREAD
    return NO_NUMBER if any(cell.num_seeds is None for cell in cells) else ""


def compare_means(cells: Sequence[Cell], arm: str, question: Question) -> Comparison:
    """Compare the mean of an arm with the baseline's. A perplexity is compared as it is, since its logs are unknown."""
    variant, baseline = (next(cell for cell in cells if (cell.arm == arm) == is_arm) for is_arm in (True, False))
    if question.scale == "log":
        question = replace(question, scale="linear", smallest=question.smallest / 100 * baseline.number)
    return compare_summaries(_summarize(baseline), _summarize(variant), question)


def _summarize(cell: Cell) -> Summary:
    """Return a mean with its SD over seeds, which one seed does not have."""
    num_seeds = cell.num_seeds or 1
    return Summary(cell.number, math.nan if cell.sd is None or num_seeds < 2 else cell.sd, num_seeds)


def check_spread_of_one_seed(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Find a spread beside the score of one seed: it cannot be over seeds."""
    # Programs that divide by n write 0 as the SD of one value.
    cells = [cell for cell in table.values if cell.num_seeds == 1 and cell.sd]
    if cells:
        shown = list_first([f"{cell.title} {cell.text} ± {cell.sd:g} ({cell.place})" for cell in cells])
        yield IntegrityFinding(
            IntegrityKind.SPREAD_OF_ONE_SEED,
            f"the number of seeds is 1, and a spread is given: {shown}. An SD over seeds cannot come from one seed; it "
            "may be over examples, batches or folds, or the number of seeds is wrong. It is not used",
            places=tuple(cell.place for cell in cells),
            data={"num_cells": len(cells)},
        )


def check_means(table: ResultTable) -> Iterator[IntegrityFinding]:
    """Note what a table of means cannot show, and what it lacks for a verdict."""
    means = [cell for cell in table.values if cell.is_mean and cell.num_seeds != 1]
    if not means:
        return
    missing = find_missing_spread(means)
    need = {
        NO_NUMBER: "For a verdict, --seeds N or a column n_seeds must say over how many seeds each mean is. ",
        NO_SPREAD: f"For a verdict, {_name_metrics_without_sd(means)} its SD over seeds, as in 82.1 ± 0.4 or a column "
        "such as acc_std. ",
    }.get(missing, "Arms are compared by Welch's t from mean, SD and number of seeds. ")
    sentence = (
        f"the cells are means over seeds. {need}The scores of single seeds would also show copied values, outliers and "
        "failed runs, which means hide"
    )
    yield IntegrityFinding(IntegrityKind.ONLY_MEANS, sentence, is_fault=False, data={"missing": missing})


def _name_metrics_without_sd(means: Sequence[Cell]) -> str:
    metrics = dict.fromkeys(cell.metric for cell in means)
    lacking = [name for name in metrics if find_missing_spread([c for c in means if c.metric == name]) == NO_SPREAD]
    return "each mean needs" if len(lacking) == len(metrics) else f"each mean of {', '.join(lacking)} needs"
