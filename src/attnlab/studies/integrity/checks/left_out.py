"""Checks of single values that could not be made, since the metric or the number of seeds is not known."""

from collections.abc import Iterator

from ..finding import IntegrityFinding, IntegrityKind, list_first
from ..tables.metrics import COUNTED, UNNAMED, find_resolution, recognise_metric
from ..tables.table import ResultTable, group_cells


def check_left_out(table: ResultTable, num_examples: int | None) -> Iterator[IntegrityFinding]:
    """Note values with a number of examples that are not checked with it. num_examples: that of --examples."""
    with_size = [cell for cell in table.values if cell.num_examples is not None]
    source = "--examples" if num_examples is not None else "the table"
    sizes = list_first(sorted({f"{cell.num_examples}" for cell in with_size}), 3)
    unknown = list(dict.fromkeys(
        cell.metric for cell in with_size if recognise_metric(cell.metric) in UNNAMED | {""}
    ))  # fmt: skip
    counted = [cell for cell in with_size if recognise_metric(cell.metric) in COUNTED]
    if unknown:
        yield _report(
            f"that values are multiples of 1/n (n = {sizes}, from {source}), and within limits, was not checked for "
            f"{list_first(unknown)}, since no known metric has this name. --metric accuracy checks both, if they are "
            "accuracies"
        )
    elif with_size and not counted and num_examples is not None:
        yield _report(
            f"--examples {num_examples} has no effect: of the metrics {list_first(table.metrics)} none is a share of "
            "right answers, as accuracy and EM are"
        )
    resolutions = [find_resolution(*item) for item in group_cells(counted, lambda cell: cell.metric).items()]
    if num_examples is not None and resolutions and all(size == rounding for size, rounding in resolutions):
        yield _report(
            f"--examples {num_examples} has no effect: values of so few digits are multiples of 1/{num_examples} "
            "whatever they are"
        )
    means = [cell for cell in counted if cell.is_mean and cell.num_seeds is None]
    if means:
        yield _report(
            f"that means over k seeds are multiples of 1/(k·n) (n = {sizes}, from {source}) was not checked, since the "
            "number of seeds is not known: --seeds N, or a column n_seeds"
        )


def _report(sentence: str) -> IntegrityFinding:
    return IntegrityFinding(IntegrityKind.CHECKS_LEFT_OUT, sentence, is_fault=False)
