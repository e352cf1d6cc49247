r"""LaTeX tables: the rows of a `tabular`, with `\multicolumn`, `\multirow`, rules, and the commands around numbers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from attnlab.errors import RequestError

from ..figure import parse_figure
from ..rows import LATEX, SECTION, TextTable, make_table
from .blocks import Rows, TextBlock, fill_first_column, make_unique
from .latex_captions import find_latex_captions
from .latex_macros import expand_macros
from .latex_text import find_unclear_macro, read_groups, split_outside_braces, to_plain_text

BEGIN = re.compile(r"\\begin\{(tabular\*?|tabularx|tabulary|longtable|array|tabu)\}")
NUM_ARGUMENTS = {"tabular*": 2, "tabularx": 2, "tabulary": 2}
COMMENT = re.compile(r"(?<!\\)%.*")
END_OF_ROW = re.compile(r"\\(?:tabularnewline|cr)(?![A-Za-z])")
r"""What ends a row besides `\\`, which means another thing in a cell that is `\raggedright`."""
RULE = re.compile(r"\\(?:hline|midrule|toprule|bottomrule|specialrule(?:\{[^}]*\}){3}|thickhline)\b(?:\[[^\]]*\])?")
SPACING = re.compile(
    r"\\(?:cmidrule|cline)\s*(?:\([^)]*\))?(?:\[[^\]]*\])?\{[^}]*\}|\\addlinespace(?:\[[^\]]*\])?|\\(?:rowcolor|noalign)"
    r"(?:\[[^\]]*\])?\{[^}]*\}|\\(?:centering|endhead|endfirsthead|endfoot)\b|^\s*\\(?:small|footnotesize|scriptsize)\b"
)


@dataclass
class LatexRow:
    """One row: its line, its cells, whether a rule stands above it, and whether one cell spans all columns.

    unclear: the cells that cannot be read, each with the macro that is not known.
    """

    line: int
    cells: list[str]
    has_rule_above: bool
    num_written: int
    spans: dict[int, int] = field(default_factory=dict)
    unclear: list[tuple[str, str]] = field(default_factory=list)


def is_latex(text: str) -> bool:
    r"""Tell whether a text has a LaTeX table, or rows of one: cells between `&` that end in `\\`."""
    return bool(BEGIN.search(text)) or bool(re.search(r"&[^\n]*\\\\", END_OF_ROW.sub(r"\\\\", text)))


def prepare_latex(text: str) -> str:
    """Remove the comments of a LaTeX text, and expand its macros; its lines stay in place."""
    return END_OF_ROW.sub(r"\\\\", expand_macros("\n".join(COMMENT.sub("", line) for line in text.split("\n"))))


def find_latex(text: str) -> list[TextBlock]:
    """Return the tables of a LaTeX text, each with the text about it."""
    text = prepare_latex(text)
    blocks, spans = [], []
    for begin in BEGIN.finditer(text):
        _, start = read_groups(text, begin.end(), NUM_ARGUMENTS.get(begin[1], 1))
        end = text.find(f"\\end{{{begin[1]}}}", start)
        if end < 0:
            raise RequestError(f"the table that begins at line {_line(text, begin.start())} has no \\end{{{begin[1]}}}")
        blocks.append(_read_block(text, start, end))
        spans.append((begin.start(), end + len(f"\\end{{{begin[1]}}}")))
    if len(blocks) < 2:
        return [replace(block, caption=text) for block in blocks or [_read_block(text, 0, len(text))]]
    return [
        replace(block, caption=caption)
        for block, caption in zip(blocks, find_latex_captions(text, spans), strict=True)
    ]  # fmt: skip


def read_latex(path: str, block: TextBlock) -> TextTable:
    """Read one LaTeX table; refuse one with a macro in its numbers that is not known."""
    for line, cell, macro in block.unclear:
        raise RequestError(
            f"line {line} of '{path}': it is not clear what {macro} in '{cell}' does to the number. Define it in the "
            f"file, such as \\newcommand{{{macro}}}[1]{{$\\pm$ #1}} if its argument is the spread, or write ± in its "
            "place; if it is no part of the result, remove it"
        )
    return make_table(path, block.header, block.rows, LATEX, block.caption)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _read_block(text: str, start: int, end: int) -> TextBlock:
    rows = list(_read_rows(text, start, end))
    if not rows:
        raise RequestError(f"the LaTeX table at line {_line(text, start)} has no rows")
    width = max(len(row.cells) for row in rows)
    _fill_spans(rows)
    num_header = next((n for n, row in enumerate(rows) if n and (row.has_rule_above or _is_data(row, rows[n - 1]))), 1)
    if num_header == len(rows):
        num_header = 1
    header = _join_header(rows[:num_header], width)
    body: Rows = []
    sections: list[str] = []
    section = ""
    for row in rows[num_header:]:
        cells = row.cells + [""] * (width - len(row.cells))
        if _is_section(row, cells, width):
            section = cells[0]
            continue
        body.append((row.line, cells))
        sections.append(section)
    body = fill_first_column(body)
    if len(set(sections)) > 1:
        header = [*header, SECTION]
        body = [(line, [*cells, name]) for (line, cells), name in zip(body, sections, strict=True)]
    unclear = [(row.line, *cell) for row in rows[num_header:] for cell in row.unclear]
    return TextBlock(_line(text, start), header, body, unclear=unclear)


def _is_data(row: LatexRow, above: LatexRow) -> bool:
    """Tell whether a row holds results: a ±, or a name of its own and mostly numbers.

    Below cells that span several columns a row names these columns, perhaps by numbers such as lengths.
    """
    figures = [parse_figure(cell) for cell in row.cells if cell]
    if any(figure is not None and figure.spread is not None for figure in figures):
        return True
    has_name = bool(row.cells[0]) and row.cells[0] != above.cells[0] and figures[0] is None
    is_below_span = above.num_written < len(above.cells)
    return has_name and not is_below_span and sum(figure is not None for figure in figures) > len(figures[1:]) / 2


def _is_section(row: LatexRow, cells: list[str], width: int) -> bool:
    """Tell whether a row only names the rows below it."""
    is_alone = bool(cells[0]) and (not any(cells[1:]) or row.num_written == 1)
    return is_alone and width > 1


def _read_rows(text: str, start: int, end: int) -> Iterator[LatexRow]:
    has_rule = False
    for offset, content in split_outside_braces(text[start:end], "\\\\"):
        content = re.sub(r"^\s*\*?\s*\[[^\]]*\]", _blank, content)
        has_rule = has_rule or bool(RULE.search(content))
        shown = SPACING.sub(_blank, RULE.sub(_blank, content))
        if not shown.strip():
            continue
        first = offset + len(shown) - len(shown.lstrip())
        row = LatexRow(_line(text, start + first), [], has_rule, 0)
        for _, cell in split_outside_braces(shown, "&"):
            row.num_written += 1
            _add_cell(row, cell)
        if any(row.cells):
            yield row
        has_rule = False


def _blank(match: re.Match[str]) -> str:
    """Return as many spaces, so that positions stay."""
    return " " * len(match[0])


def _add_cell(row: LatexRow, cell: str) -> None:
    command = re.match(r"\s*\\(multicolumn|multirow)\s*", cell)
    groups = read_groups(cell, command.end(), 3)[0] if command is not None else []
    if command is None or len(groups) < 3:
        row.cells.append(_read_cell(row, cell))
        return
    number = re.fullmatch(r"\s*-?(\d+)\s*", groups[0])
    count = int(number[1]) if number else 1
    if command[1] == "multirow":
        row.spans[len(row.cells)] = count
        row.cells.append(_read_cell(row, groups[2]))
    else:
        inner = LatexRow(row.line, [], False, 0)
        _add_cell(inner, groups[2])
        row.cells += inner.cells * min(count, 100)
        row.unclear += inner.unclear


def _read_cell(row: LatexRow, cell: str) -> str:
    """Return the text of a cell, with its commands if one of them is not known."""
    macro = find_unclear_macro(cell)
    if not macro:
        return to_plain_text(cell)
    text = " ".join(cell.split())
    row.unclear.append((text, macro))
    return text


def _fill_spans(rows: list[LatexRow]) -> None:
    """Repeat the text of a `multirow` in the rows that it spans."""
    for at, row in enumerate(rows):
        for column, count in row.spans.items():
            for below in rows[at + 1 : at + count]:
                if column < len(below.cells) and not below.cells[column]:
                    below.cells[column] = row.cells[column]


def _join_header(rows: list[LatexRow], width: int) -> list[str]:
    """Join the rows of a header, column by column."""
    names = []
    for column in range(width):
        words = [row.cells[column] for row in rows if column < len(row.cells) and row.cells[column]]
        names.append(" ".join(dict.fromkeys(words)))
    return make_unique(names)
