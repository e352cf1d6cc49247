"""Reported means and SDs, checked against the recorded values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attnlab.errors import RequestError

from .finding import IntegrityFinding, IntegrityKind, list_first
from .headers import guess_pattern
from .metrics import LIMITED, kind_of
from .resolution import decimals_of
from .roles import find_roles
from .rows import Rows, as_number, read_rows
from .table import ResultTable, show_step

MEANS, SDS = ("mean", "avg", "average"), ("std", "sd", "stdev", "stddev")
SUFFIX = re.compile(rf"[^A-Za-z0-9]?({'|'.join((*MEANS, *SDS))})$", re.IGNORECASE)


@dataclass(frozen=True)
class Reported:
    """One figure of a summary: its arm, group, metric and step, whether it is a mean or an SD, and its value."""

    arm: str
    group: str
    metric: str
    step: float | None
    figure: str
    value: float
    text: str
    place: str


def check_summaries(table: ResultTable, path: str) -> Iterator[IntegrityFinding]:
    """Compare every figure of a summary file with the runs that it summarises."""
    reported, wrong, unmatched = read_summary(path, table), [], []
    factors = {metric: _find_factor(table, reported, metric) for metric in {one.metric for one in reported}}
    for one in reported:
        values = _recorded(table, one) * factors[one.metric]
        if len(values) < (2 if one.figure == "sd" else 1):
            unmatched.append(f"{one.text} ({one.place})")
        elif not _agrees(one, values):
            known = values.mean() if one.figure == "mean" else values.std(ddof=1)
            shown = " ".join(filter(None, (one.arm, one.group, one.metric)))
            wrong.append((one, f"{shown} at {show_step(one.step)}: {one.figure} {one.text}, recorded {known:.6g}"))
    if wrong:
        yield IntegrityFinding(
            IntegrityKind.SUMMARY_DIFFERS,
            f"{len(wrong)} of {len(reported)} figures of {path} differ from the recorded values: "
            f"{list_first([text for _, text in wrong], 3)}",
            places=tuple(one.place for one, _ in wrong),
        )
    rescaled = sorted(metric for metric, factor in factors.items() if factor != 1)
    if rescaled:
        unit = "percent" if factors[rescaled[0]] > 1 else "fractions"
        yield IntegrityFinding(
            IntegrityKind.SUMMARY_DIFFERS,
            f"{path} has {list_first(rescaled)} as {unit}, unlike the table",
            is_fault=False,
        )
    if unmatched:
        sentence = (
            f"{len(unmatched)} figures of {path} have no recorded values to compare with: {list_first(unmatched, 3)}"
        )
        yield IntegrityFinding(IntegrityKind.SUMMARY_DIFFERS, sentence, is_fault=False)


def read_summary(path: str, table: ResultTable) -> list[Reported]:
    """Read a summary: wide, with names such as base_em_mean, or long, with columns mean and sd."""
    rows = read_rows(path)
    columns = {name: figure for name in rows.header if (figure := _figure(name))}
    if not columns:
        raise RequestError(
            f"'{path}' has no column of means or SDs; a summary has columns such as arm, metric, mean, sd, or names "
            "such as base_em_mean"
        )
    is_long = all(SUFFIX.sub("", name) == "" for name in columns)
    found = list(_long(rows, columns, table) if is_long else _wide(rows, columns, table))
    if not found:
        raise RequestError(f"no figure of '{path}' could be read; its columns are not those of the table")
    return found


def _figure(name: str) -> str:
    found = SUFFIX.search(name)
    if found is None:
        return ""
    return "mean" if found[1].lower() in MEANS else "sd"


def _long(rows: Rows, columns: dict[str, str], table: ResultTable) -> Iterator[Reported]:
    roles = find_roles(rows, {"value": "+".join(columns)})
    for number, row in rows.rows:
        said = dict(zip(rows.header, row, strict=True))
        parts = {part: said[column] for part, column in roles.parts.items()}
        group = ", ".join(said[name] for name in roles.groups)
        step = as_number(parts["step"]) if "step" in parts else table.steps[-1]
        metric = parts.get("metric", table.metrics[0])
        for name, figure in columns.items():
            value = as_number(said[name])
            if value is not None:
                place = f"line {number}, {name}"
                yield Reported(parts.get("arm", "all"), group, metric, step, figure, value, said[name], place)


def _wide(rows: Rows, columns: dict[str, str], table: ResultTable) -> Iterator[Reported]:
    stems = list(dict.fromkeys(SUFFIX.sub("", name) for name in columns))
    pattern = guess_pattern(stems, ("arm", "metric"))
    if pattern is None:
        return
    roles = find_roles(rows, {})
    for number, row in rows.rows:
        said = dict(zip(rows.header, row, strict=True))
        step = as_number(said[roles.parts["step"]]) if "step" in roles.parts else table.steps[-1]
        for name, figure in columns.items():
            whose = pattern.meanings[SUFFIX.sub("", name)]
            value = as_number(said[name])
            if value is not None:
                metric = whose.get("metric", table.metrics[0])
                place = f"line {number}, {name}"
                yield Reported(whose["arm"], whose.get("group", ""), metric, step, figure, value, said[name], place)


def _recorded(table: ResultTable, one: Reported) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    whose = one.arm, one.group, one.metric, one.step
    cells = [cell for cell in table.values if (cell.arm, cell.group, cell.metric, cell.step) == whose]
    return np.array([cell.value for cell in cells], dtype=np.float64)


def _find_factor(table: ResultTable, reported: Sequence[Reported], metric: str) -> float:
    """Return 100 or 0.01 if a limited metric is in another unit than the table, so that its means agree only then."""
    if kind_of(metric) not in LIMITED:
        return 1.0
    means = [one for one in reported if one.metric == metric and one.figure == "mean"]
    known = [(one, values) for one in means if len(values := _recorded(table, one))]
    return max((1.0, 100.0, 0.01), key=lambda factor: sum(_agrees(one, factor * values) for one, values in known))


def _agrees(one: Reported, values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> bool:
    """Tell whether a figure is right to its last digit; an SD may be divided by n or n − 1."""
    right: Sequence[float] = [values.mean()] if one.figure == "mean" else [values.std(ddof=1), values.std(ddof=0)]
    slack = 0.51 * 10.0 ** -decimals_of(one.text) + 1e-9 * max(1.0, abs(one.value))
    return any(abs(one.value - figure) <= slack for figure in right)
