"""Columns and rows of differences, such as `Δ` or `vs. baseline`: neither tasks nor arms, and checked.

A column is one by its name and its numbers together: an arm may be called `Diff`. Without a name, every figure must
have a sign, and another column none. A difference is of two rows in one column, or of two columns in one row; in a row
of differences it is the other way round.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from attnlab.errors import RequestError

from .column_names import NAMES, is_setting
from .figure import MARKS, is_empty, parse_figure
from .mapping import quote_map
from .metrics import SIGNED, UNNAMED, count_decimals, recognise_metric, split_words
from .patterns import BASELINES
from .rows import TextTable, list_columns
from .table import StatedDifference

NONE = "none"
PARTS = frozenset(name for part in ("seed", "step", "examples", "num_seeds") for name in NAMES[part])
CORE = re.compile(
    r"[Δ∆]|\b(?:delta|diff|difference|improvements?|improv|gains?|change|lift|vs|versus)\b", re.IGNORECASE
)
FILLERS = frozenset({
    "over", "from", "to", "of", "the", "wrt", "w", "r", "t", "relative", "rel", "abs", "absolute", "pp", "points",
    "pts", "percent", "in", "and", "mean", "avg", "average", "our", "ours", "acc", "score", "best", *BASELINES,
})  # fmt: skip
SIGN = re.compile(r"\(?\s*[+\-−↑↓±]")
CHANGE = re.compile(r"\(?\s*([+\-−↑↓]?)\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*(?:pp|pts?|points?)?\s*\)?", re.IGNORECASE)
MAX_LINES, MAX_SERIES = 200, 12
"""So many figures are enough to tell what a column is the difference of."""
MIN_AGREEING = 2
SHARE = 0.5
"""Differences by name that have no signs are smaller than this share of the scores."""


@dataclass(frozen=True)
class Series:
    """A column or a row: its name, and the text of each figure."""

    name: str
    texts: tuple[str, ...]

    @property
    def is_signed(self) -> bool:
        """Whether each figure has a sign or is 0, at least one a plus."""
        filled = [text.strip(MARKS) for text in self.texts if not is_empty(text)]
        signed = [text for text in filled if SIGN.match(text)]
        has_zeros = all(read_change(text) == 0.0 for text in filled if text not in signed)
        return len(signed) > 1 and has_zeros and any(re.match(r"\(?\s*[+↑]", text) for text in signed)


@dataclass(frozen=True)
class DifferenceSource:
    """What differences are of, in words, and the value of each with how far rounding may move it; None if unknown."""

    words: str
    shape: tuple[str, ...]
    expected: tuple[tuple[float, float] | None, ...]


def read_change(text: str) -> float | None:
    """Read a difference such as +0.8, (−0.3), ↑1.2 or +2 pp; None if it is none."""
    match = CHANGE.fullmatch(text.strip(MARKS))
    if match is None:
        figure = parse_figure(text)
        return None if figure is None else figure.value
    return float(match[2]) * (-1 if match[1] in ("-", "−", "↓") else 1)


def set_differences_aside(
    rows: TextTable, given: Mapping[str, str]
) -> tuple[TextTable, tuple[StatedDifference, ...], str]:
    """Return a table without its columns and rows of differences, these differences, and their names for --map."""
    asked = given.get("differences", "")
    if rows.scores or rows.is_of_tracker or asked == NONE:
        return rows, (), asked
    numeric = [name for name in rows.header if _is_figures(rows.column(name))]
    texts = [name for name in rows.header if name not in numeric]
    columns = [name for name in numeric if " ".join(split_words(name)) not in PARTS and not is_setting(name)]
    titles = [" ".join(filter(None, (row[name] for name in texts))) for _, row in rows.rows]
    by_column = [Series(name, tuple(rows.column(name))) for name in columns]
    by_row = [
        Series(title, tuple(row[name] for name in columns)) for title, (_, row) in zip(titles, rows.rows, strict=True)
    ]
    taken = [text for part, text in given.items() if part != "differences"]
    chosen_columns = [
        at for at in _find(by_column, titles, asked) if not any(_names(text, columns[at]) for text in taken)
    ]
    chosen_rows = _find(by_row, columns, asked) if texts else []
    if asked and not chosen_columns and not chosen_rows:
        known = list_columns([*columns, *dict.fromkeys(titles)])
        raise RequestError(
            f"--map differences={asked} names no column or row of figures in '{rows.name}'; there are {known}. Give "
            f"their names joined by +, or differences={NONE} if the table has none"
        )
    has_scores = len(chosen_columns) < len(columns) and len(chosen_rows) < len(rows.rows)
    if not has_scores or not (chosen_columns or chosen_rows):
        return rows, (), ""
    lines = [line for line, _ in rows.rows]
    stated = [*_state(by_column, chosen_columns, titles, lines, chosen_rows)]
    stated += _state(by_row, chosen_rows, columns, columns, chosen_columns, lines)
    dropped = {columns[at] for at in chosen_columns}
    header = tuple(name for name in rows.header if name not in dropped)
    kept = tuple(row for at, row in enumerate(rows.rows) if at not in chosen_rows)
    names = list(dict.fromkeys([*(columns[at] for at in chosen_columns), *(titles[at] for at in chosen_rows)]))
    remark = f"not compared, as differences: {'; '.join(_describe(names, stated))} ({_hint(names)})"
    table = replace(rows, header=header, rows=kept, remarks=(*rows.remarks, remark))
    return table, tuple(stated), "+".join(names)


def _names(text: str, name: str) -> bool:
    """Tell whether a part of --map, of names joined by +, has a name."""
    return bool(name) and f"+{name}+" in f"+{text}+"


def _hint(names: Sequence[str]) -> str:
    what = "these are scores" if len(names) > 1 else "this is a score"
    return f"if {what}, {quote_map(f'differences={NONE}')}"


def _describe(names: Sequence[str], stated: Sequence[StatedDifference]) -> Iterator[str]:
    sources = {difference.name: difference.source for difference in stated}
    for name in names[:8]:
        yield f"{name!r}, {sources.get(name) or 'of what is not clear, so that it is not checked'}"
    if len(names) > 8:
        yield f"and {len(names) - 8} more: {list_columns(names[8:], 4)}"


def _is_figures(texts: Sequence[str]) -> bool:
    filled = [text for text in texts if not is_empty(text)]
    return bool(filled) and all(read_change(text) is not None for text in filled)


def _find(series: Sequence[Series], others: Sequence[str], asked: str) -> list[int]:
    """Return the places of the series that are differences. others: the names across, of rows or columns."""
    if asked:
        return [at for at, one in enumerate(series) if _names(asked, one.name)]
    names = {one.name for one in series}
    by_name = [at for at, one in enumerate(series) if _is_difference_name(one.name, names, others)]
    signed = [at for at, one in enumerate(series) if one.is_signed and _may_be_unnamed(one.name)]
    scores = [at for at in range(len(series)) if at not in (*by_name, *signed)]
    found = []
    for at in dict.fromkeys([*by_name, *signed] if scores else ()):
        is_small = at in by_name and _are_small(series[at], [series[score] for score in scores])
        if series[at].is_signed or is_small or _is_known(series[at], _find_source(series, at, scores, others, [])):
            found.append(at)
    return sorted(found)


def _may_be_unnamed(name: str) -> bool:
    return recognise_metric(name) not in SIGNED | UNNAMED


def _is_difference_name(name: str, names: set[str], others: Sequence[str]) -> bool:
    """Tell whether a name consists of words for a difference and of names in the table, such as `ours - base`."""
    parts = [part.strip() for part in re.split(r"\s+[-−–]\s+", name)]
    if len(parts) == 2 and names.issuperset(parts):
        return True
    if not CORE.search(name):
        return False
    known = {word for other in (*names - {name}, *others) for word in split_words(other)}
    return all(word in FILLERS or word in known or word.isdigit() for word in split_words(CORE.sub(" ", name)))


def _are_small(one: Series, scores: Sequence[Series]) -> bool:
    sizes = [abs(value) for value in map(read_change, one.texts) if value is not None]
    others = [abs(figure.value) for score in scores for text in score.texts if (figure := parse_figure(text))]
    return bool(sizes) and bool(others) and max(sizes) < SHARE * min(others)


def _find_source(
    series: Sequence[Series], at: int, scores: Sequence[int], others: Sequence[str], without: Sequence[int]
) -> DifferenceSource | None:
    """Return what a series is the difference of: the source with which most of its figures agree."""
    sources = list(_list_sources(series, at, scores, others, without))
    return max(sources, key=lambda source: _count(series[at], source)[0] - _count(series[at], source)[1], default=None)


def _list_sources(
    series: Sequence[Series], at: int, scores: Sequence[int], others: Sequence[str], without: Sequence[int]
) -> Iterator[DifferenceSource]:
    """Yield what a series may be the difference of. without: places in a series that are differences themselves."""
    words = {*split_words(series[at].name)}
    left = [place for place in scores if place < at]
    about = [place for place in scores if {*split_words(series[place].name)} & (words - FILLERS)]
    subjects = list(dict.fromkeys([*about, *left[-1:], *scores]))[:MAX_SERIES]
    count = min(len(series[at].texts), MAX_LINES)
    usual = [place for place, name in enumerate(others[:count]) if any(base in name.lower() for base in BASELINES)]
    references = [place for place in dict.fromkeys([*usual, *range(count)]) if place not in without][:MAX_SERIES]
    for place in subjects:
        values = series[place].texts
        for reference in references:
            pairs = [None if at_line == reference else (values[at_line], values[reference]) for at_line in range(count)]
            yield from _list_measures(
                pairs, f"{series[place].name!r} minus that of {others[reference]!r}", (str(reference),)
            )
        previous = [None if not at_line else (values[at_line], values[at_line - 1]) for at_line in range(count)]
        yield from _list_measures(previous, f"{series[place].name!r} minus the one before it", ("previous",))
    for first in subjects:
        for second in subjects:
            if first != second:
                pairs = list(zip(series[first].texts[:count], series[second].texts[:count], strict=True))
                yield from _list_measures(pairs, f"{series[first].name!r} minus {series[second].name!r}", ("across",))


def _list_measures(
    pairs: Sequence[tuple[str, str] | None], words: str, shape: tuple[str, ...]
) -> Iterator[DifferenceSource]:
    """Yield the difference, with either sign, and the change in percent."""
    for name, sign, is_relative in (("", 1, False), (" in percent", 1, True), (", sign reversed", -1, False),
                                    (" in percent, sign reversed", -1, True)):  # fmt: skip
        expected = tuple(None if pair is None else _measure(*pair, sign, is_relative) for pair in pairs)
        yield DifferenceSource(f"{words}{name}", (*shape, name), expected)


def _measure(first: str, second: str, sign: int, is_relative: bool) -> tuple[float, float] | None:
    """Return a difference of two figures, and how far rounding of both may move it."""
    one, other = parse_figure(first), parse_figure(second)
    if one is None or other is None or (is_relative and not other.value):
        return None
    halves = [0.5 * 10.0 ** -count_decimals(figure.text) for figure in (one, other)]
    if not is_relative:
        return sign * (one.value - other.value), sum(halves)
    ratio = one.value / other.value
    return sign * 100 * (ratio - 1), 100 * (halves[0] + abs(ratio) * halves[1]) / abs(other.value)


def measure_excess(text: str, expected: tuple[float, float]) -> float:
    """Return how far a difference is from what it should be, in units of what rounding explains."""
    value, (known, rounding) = read_change(text) or 0.0, expected
    own = 0.5 * 10.0 ** -count_decimals(re.sub(r"[^\d.]", "", text.partition("±")[0]))
    return abs(value - known) / (1.01 * (own + rounding) + 1e-9 * max(1.0, abs(known)))


def _count(one: Series, source: DifferenceSource) -> tuple[int, int]:
    """Count the figures that agree with a source, and those that do not."""
    pairs = [(text, known) for text, known in zip(one.texts, source.expected, strict=False) if known is not None]
    agree = [measure_excess(text, known) <= 1 for text, known in pairs if not is_empty(text)]
    return sum(agree), len(agree) - sum(agree)


def _is_known(one: Series, source: DifferenceSource | None) -> bool:
    num_agreeing, num_wrong = (0, 0) if source is None else _count(one, source)
    return num_agreeing >= max(MIN_AGREEING, num_wrong)


def _state(
    series: Sequence[Series], chosen: Sequence[int], others: Sequence[str], places: Sequence[str],
    without: Sequence[int], lines: Sequence[str] = (),
) -> Iterator[StatedDifference]:  # fmt: skip
    """Yield each difference with what it should be. lines: of series that are rows, the line of each."""
    scores = [at for at in range(len(series)) if at not in chosen]
    sources = {at: _find_source(series, at, scores, others, without) for at in chosen}
    shapes = [source.shape for at, source in sources.items() if source is not None and _is_known(series[at], source)]
    for at, source in sources.items():
        # One figure that agrees is enough if another series of differences has the same kind of source.
        is_known = _is_known(series[at], source) or (
            source is not None and source.shape in shapes and _count(series[at], source)[0] > 0
        )
        if source is None or not is_known:
            continue
        for place, (text, known) in enumerate(zip(series[at].texts, source.expected, strict=False)):
            if known is not None and not is_empty(text) and place not in without:
                where = f"{lines[at]}, {places[place]}" if lines else f"{places[place]}, {series[at].name}"
                excess = measure_excess(text, known)
                yield StatedDifference(series[at].name, others[place], text, where, source.words, known[0], excess)
