"""What the user gives to `judge` besides the table: thresholds, floors and units by metric, primary metrics, a summary.

On the command line a value is given for all primary metrics (`--smallest 1`) or by metric (`--smallest f1=1,ppl=2`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attnlab.errors import RequestError, closest

from .checks.units import UNITS, Unit, Units
from .tables.caption import SPREADS
from .tables.metrics import LIMITED, PERPLEXITIES, are_same_metric, recognise_metric, remove_direction, split_words
from .tables.reading import TableHints
from .tables.table import ResultTable

TRAINING = (["train"], ["training"])
"""How the names of metrics of training data begin."""
LARGEST_SHARE = 0.2
"""A smallest difference of interest of more than 20 points was meant in percent."""
Numbers = float | Mapping[str, float] | None
Words = str | Mapping[str, str] | None
"""One value for all primary metrics, a value by metric, or None."""


@dataclass(frozen=True)
class JudgeOptions:
    """Options of `judge`. num_examples: size of the evaluation set. summary: a file of reported means and SDs.

    smallest: the smallest difference of interest. floor: the score of a trivial strategy. units: 'percent', 'fraction'
    or 'convert'. primary: the metrics whose comparisons get verdicts; all if empty. is_paired: the same seed in two
    arms is a pair. obstacles: why an arm cannot be compared, by arm and group.
    """

    num_examples: int | None = None
    summary: str | None = None
    smallest: Numbers = None
    floor: Numbers = None
    units: Words = None
    primary: Sequence[str] = ()
    is_paired: bool = False
    obstacles: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def find_primary(self, table: ResultTable) -> list[str]:
        """Return the primary metrics of a table: the given ones, or all that are not of training data, if there are."""
        primary = [_find_metric("--primary", metric, table) for metric in self.primary]
        primary = primary or [metric for metric in table.metrics if split_words(metric)[:1] not in TRAINING]
        return [metric for metric in table.metrics if not primary or metric in primary]

    def find_units(self, table: ResultTable) -> dict[str, Unit]:
        """Return the units that were given, by metric."""
        given = self.units if isinstance(self.units, Mapping) else dict.fromkeys(table.metrics, self.units)
        units: dict[str, Unit] = {}
        for given_metric, name in given.items():
            metric = _find_metric("--units", given_metric, table)
            unit = next((unit for unit in UNITS if unit == name), None)
            if unit is not None:
                units[metric] = unit
            elif name is not None:
                raise RequestError(
                    f"--units has no '{name}'{closest(name, UNITS) or '.'} It takes percent or fraction, if all values "
                    "are that, or convert, which multiplies the fractions among percentages by 100"
                )
        return units

    def find_smallest(self, table: ResultTable, units: Units) -> dict[str, float]:
        """Return the smallest differences that were given, by metric."""
        smallest = self._spread("--smallest", self.smallest, table, units)
        for metric, value in smallest.items():
            if not 0 < value < math.inf:
                raise RequestError(f"--smallest must be a number above 0, not {value:g}")
            if recognise_metric(metric) in LIMITED and units.list_scales(metric) == {1.0} and value > LARGEST_SHARE:
                raise RequestError(
                    f"--smallest is in units of the table, where {metric} is a fraction: {value:g} would be "
                    f"{100 * value:g} points. For {value:g} points give {value / 100:g}"
                )
        return smallest

    def find_floors(self, table: ResultTable, units: Units) -> dict[str, float]:
        """Return the floors that were given, by metric."""
        floors = self._spread("--floor", self.floor, table, units)
        for metric, value in floors.items():
            if not math.isfinite(value):
                raise RequestError(f"--floor must be a number, not {value:g}")
            limits = units.list_scales(metric)
            if limits and abs(value) > min(limits):
                raise RequestError(
                    f"--floor {value:g} is beyond {metric}, which lies between 0 and {min(limits):g} in this table"
                )
            if recognise_metric(metric) in PERPLEXITIES and value < 1:
                raise RequestError(f"--floor {value:g} is beyond {metric}, which is at least 1")
        return floors

    def _spread(self, option: str, given: Numbers, table: ResultTable, units: Units) -> dict[str, float]:
        """Return a value by metric; one number for metrics of different units is refused."""
        if given is None:
            return {}
        if isinstance(given, Mapping):
            return {_find_metric(option, metric, table): float(value) for metric, value in given.items()}
        primary = self.find_primary(table)
        by_unit = {_name_unit(metric, units): metric for metric in reversed(primary)}
        if len(by_unit) > 1:
            first, second, *_ = reversed(by_unit.values())
            raise RequestError(
                f"{option} {given:g} cannot hold for both {first} and {second}, which have different units; give one "
                f"for each, such as {option} {first}={given:g},{second}=…, or choose the metric with --primary"
            )
        return dict.fromkeys(primary, float(given))


def _name_unit(metric: str, units: Units) -> str:
    name = recognise_metric(metric)
    if name in LIMITED:
        return " ".join(sorted(map(str, units.list_scales(metric))))
    return "percent change" if name in PERPLEXITIES else name or metric


def _find_metric(option: str, metric: str, table: ResultTable) -> str:
    """Return the metric of a table that has this name, or the only one that is it in other letters or words."""
    if metric in table.metrics:
        return metric
    plain = [name for name in table.metrics if remove_direction(name).lower() == metric.lower()]
    same = [name for name in table.metrics if are_same_metric(name, metric)]
    for names in (plain, same):
        if len(names) == 1:
            return names[0]
    raise RequestError(
        f"{option} names '{metric}', which is not a metric of this table{closest(metric, table.metrics) or '.'} "
        f"Metrics: {', '.join(table.metrics[:12])}"
    )


def read_hints(metric: str | None, num_seeds: int | None, spread: str | None) -> TableHints:
    """Read what the user says of a table that it does not say itself."""
    if num_seeds is not None and num_seeds < 1:
        raise RequestError(f"--seeds must be 1 or more, not {num_seeds}")
    kind = next((kind for kind in SPREADS if kind == spread), None)
    if spread is not None and kind is None:
        raise RequestError(f"--spread has no '{spread}'. It takes sd, se or ci: SD, standard error, 95 % interval")
    if metric is not None and "=" in metric:
        raise RequestError(
            f"--metric takes the name of one metric, such as accuracy or 'PPL ↓', not '{metric}'; where columns have "
            "metrics of their own, name the columns after them, and give --map value=COLUMN+… to read some"
        )
    return TableHints(metric, num_seeds, kind)


def read_numbers(option: str, text: str | None) -> Numbers:
    """Read `X` or `METRIC=X,…`."""
    given = read_texts(option, text)
    if isinstance(given, Mapping):
        return {metric: _read_number(option, number) for metric, number in given.items()}
    return None if given is None else _read_number(option, given)


def read_texts(option: str, text: str | None) -> Words:
    """Read `WORD` or `METRIC=WORD,…`."""
    if text is None or "=" not in text:
        return text
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    if not all(metric.strip() and word.strip() for metric, _, word in pairs):
        raise RequestError(f"{option} takes one value, or METRIC=VALUE separated by commas; '{text}' is neither")
    return {metric.strip(): word.strip() for metric, _, word in pairs}


def read_names(text: str | None) -> tuple[str, ...]:
    """Read names separated by commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _read_number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise RequestError(f"{option} takes a number, or METRIC=NUMBER separated by commas, not '{text}'") from error
