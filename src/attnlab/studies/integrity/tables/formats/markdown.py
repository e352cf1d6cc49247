"""Markdown tables: lines of cells between `|`, the second of dashes."""

import re
from collections.abc import Iterator

from ..rows import MARKDOWN, TextTable, make_table
from .blocks import TextBlock, fill_first_column

RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
BETWEEN = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
TAG = re.compile(r"<[^>]*>")


def find_markdown(lines: list[str]) -> list[TextBlock]:
    """Return the tables of a Markdown text."""
    return list(_find_blocks(lines))


def _find_blocks(lines: list[str]) -> Iterator[TextBlock]:
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
        yield TextBlock(number, header, fill_first_column([(at, _fit(row, len(header))) for at, row in rows]))


def read_markdown(path: str, block: TextBlock, caption: str) -> TextTable:
    """Read one Markdown table."""
    return make_table(path, block.header, block.rows, MARKDOWN, caption)


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
