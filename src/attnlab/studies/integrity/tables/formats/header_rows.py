"""Headers of two rows, as spreadsheets export them: groups above, and below them what each column of a group holds.

An empty cell of the upper row continues the group on its left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from attnlab.errors import RequestError

from ..average_columns import MIN_OTHERS, is_mean, measure_excess, state_average
from ..column_names import BUDGETS, NAMES, is_setting
from ..figure import is_empty, parse_figure
from ..metrics import split_words
from ..patterns import SEED_COLUMN
from .blocks import Rows

PARTS = frozenset(name for names in NAMES.values() for name in names)


@dataclass(frozen=True)
class TableHeader:
    """The names of the columns, the rows below them, and what was done to read the names, in words."""

    names: list[str]
    rows: Rows
    remarks: tuple[str, ...] = ()


def read_header(path: str, upper: Sequence[str], rows: Rows, has_two_rows: bool = False) -> TableHeader:
    """Return the header of a table; its first row is joined to it if that row names columns below groups.

    has_two_rows: whether the format says that it does, as a Markdown table with two lines above its rule.
    """
    if len(rows) < 2 or len(upper) > len(rows[0][1]):
        return TableHeader([*upper], rows)
    lower, below = rows[0][1], rows[1:]
    groups = [*upper, *[""] * (len(lower) - len(upper))]
    if any(len(row) != len(lower) for _, row in below):
        return TableHeader([*upper], rows)
    scores = [column for column in range(len(lower)) if _is_numeric([row[column] for _, row in below])]
    if not has_two_rows and not _is_lower_row(groups, lower, scores):
        return TableHeader([*upper], rows)
    names = _join(path, groups, lower, below, scores)
    shown = ", ".join(f"'{names[column]}'" for column in scores[:3])
    more = ", …" if len(scores) > 3 else ""
    return TableHeader(names, below, (f"two header rows, joined to names of columns: {shown}{more}",))


def _is_numeric(texts: Sequence[str]) -> bool:
    filled = [text for text in texts if not is_empty(text)]
    return bool(filled) and all(parse_figure(text) is not None for text in filled)


def _is_lower_row(groups: Sequence[str], lower: Sequence[str], scores: Sequence[int]) -> bool:
    """Tell whether the second row names columns: in place of an arm it has nothing, or the name of the column.

    Numbers, such as seeds or lengths, are names only below groups that span several columns.
    """
    others = [column for column in range(len(lower)) if column not in scores]
    has_no_arm = bool(others) and all(
        lower[column] in ("", groups[column]) or " ".join(split_words(lower[column])) in PARTS for column in others
    )
    labels = [lower[column] for column in scores if lower[column]]
    spans_columns = any(not group or group in groups[:column] for column, group in enumerate(groups) if column)
    if len(scores) < 2 or len(labels) < 2 or not any(groups[column] for column in scores):
        return False
    if all(parse_figure(label) is None and not is_empty(label) for label in labels):
        return has_no_arm or (spans_columns and not others)
    return has_no_arm and spans_columns and all(label.isdigit() for label in labels)


def _join(path: str, groups: Sequence[str], lower: Sequence[str], below: Rows, scores: Sequence[int]) -> list[str]:
    """Join both rows, column by column; a column that is none of a group by its name is not put into one."""
    held, name = list[str](), ""
    for column, group in enumerate(groups):
        name = group or (name if column in scores else "")
        held.append("" if not group and _is_of_table(lower[column]) else name)
    unclear = [column for column in scores if not groups[column] and held[column] and is_mean(lower[column])]
    labels = {group: [lower[at] for at in scores if held[at] == group] for group in dict.fromkeys(held)}
    for column in unclear:
        if any(lower[column] not in of_group for group, of_group in labels.items() if group):
            held[column] = _find_group_of_mean(path, column, held, lower, below, scores)
    # Seeds stand behind the metric in the names of columns.
    are_seeds = all(SEED_COLUMN.fullmatch(held[column]) for column in scores if held[column])
    pairs = zip(lower, held, strict=True) if are_seeds else zip(held, lower, strict=True)
    return [" ".join(dict.fromkeys(filter(None, pair))) for pair in pairs]


def _is_of_table(label: str) -> bool:
    """Tell whether a column is a part, a setting or a budget of the whole table by its name."""
    return " ".join(split_words(label)) in PARTS - {"score", "value", "result"} or is_setting(label) or (
        "".join(split_words(label)) in BUDGETS
    )  # fmt: skip


def _find_group_of_mean(
    path: str, column: int, held: Sequence[str], lower: Sequence[str], below: Rows, scores: Sequence[int]
) -> str:
    """Return the group of a mean without one above it, by its numbers: the one on its left, or none if it is of all."""
    keys = [str(at) for at in range(len(lower))]
    others = [at for at in scores if at != column and not is_mean(lower[at])]
    for group, over in (held[column], [at for at in others if held[at] == held[column]]), ("", others):
        chosen = [keys[at] for at in over]
        stated = [
            state_average(keys[column], f"line {line}", dict(zip(keys, row, strict=True)), chosen, keys)
            for line, row in below
        ]
        complete = [average for average in stated if average is not None]
        if len(over) >= MIN_OTHERS and complete and all(measure_excess(average, chosen) <= 1 for average in complete):
            return group
    raise RequestError(
        f"'{path}': is '{lower[column]}' in column {column + 1} the mean of '{held[column]}' or of all groups? The "
        f"cell above it is empty, and it is neither by its numbers. Write '{held[column]}', or 'All', above it"
    )
