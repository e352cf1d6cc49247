"""Markdown tables: lines of cells between `|`, the second of dashes."""

import re
from collections.abc import Iterator
from dataclasses import replace

from ..rows import MARKDOWN, TextTable, make_table
from .blocks import TextBlock, fill_first_column
from .header_rows import read_header
from .lm_eval import is_printed_lm_eval, read_printed_lm_eval

RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
BETWEEN = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
HEADING = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*\s*$")
TAG = re.compile(r"<[^>]*>")


def find_markdown(lines: list[str]) -> list[TextBlock]:
    """Return the tables of a Markdown text, each with the text about it."""
    spans = list(_find_blocks(lines))
    if len(spans) < 2:
        return [replace(block, caption="\n".join(lines)) for block, _ in spans]
    starts, ends = [block.line - 1 for block, _ in spans], [end for _, end in spans]
    # Between two tables, what is below a heading is about the table below; without a heading all of it is.
    borders = [_find_heading(lines, end, start) for end, start in zip(ends, [*starts[1:], len(lines)], strict=True)]
    begins = [0, *(end if border is None else border for end, border in zip(ends, borders, strict=True))]
    lasts = [end if border is None else border for end, border in zip(ends, borders, strict=True)]
    if borders[-1] is None:
        lasts[-1] = len(lines)
    return [
        replace(block, caption="\n".join([*lines[begin:start], *lines[end:last]]))
        for (block, end), begin, start, last in zip(spans, begins, starts, lasts, strict=False)
    ]


def _find_heading(lines: list[str], start: int, end: int) -> int | None:
    return next((number for number in range(start, end) if HEADING.match(lines[number])), None)


def _find_blocks(lines: list[str]) -> Iterator[tuple[TextBlock, int]]:
    """Yield each table, and the number of lines up to its end."""
    for number in range(1, len(lines)):
        if "|" not in lines[number] + lines[number - 1] or not RULE.fullmatch(lines[number]):
            continue
        header, rows = _split(lines[number - 1]), []
        if len(header) != len(_split(lines[number])):
            continue
        for at, line in enumerate(lines[number + 1 :], start=number + 2):
            if "|" not in line:
                break
            rows.append((at, _split(line)))
        upper = _split(lines[number - 2]) if number > 1 and "|" in lines[number - 2] else []
        has_two_rows = len(upper) == len(header) and not RULE.fullmatch(lines[number - 2])
        body = [(at, _fit(row, len(header))) for at, row in rows]
        if has_two_rows:
            header, body = upper, [(number, header), *body]
        yield TextBlock(number - has_two_rows, header, body, has_two_rows=has_two_rows), number + 1 + len(rows)


def read_markdown(path: str, block: TextBlock) -> TextTable:
    """Read one Markdown table."""
    if is_printed_lm_eval(block.header):
        return read_printed_lm_eval(path, block.header, block.rows, block.caption)
    joined = read_header(path, block.header, block.rows, block.has_two_rows)
    return make_table(path, joined.names, fill_first_column(joined.rows), MARKDOWN, block.caption, joined.remarks)


def _split(line: str) -> list[str]:
    line = line.strip()
    line = line.removeprefix("|")
    line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
    return [_clean(cell) for cell in BETWEEN.split(line)]


def _fit(row: list[str], width: int) -> list[str]:
    return row + [""] * (width - len(row))


def _clean(cell: str) -> str:
    text = TAG.sub(" ", LINK.sub(r"\1", cell)).replace("\\|", "|").replace("**", "").replace("__", "").replace("`", "")
    return " ".join(text.split())
