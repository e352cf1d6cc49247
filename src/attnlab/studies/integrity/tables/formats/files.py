"""Reads result files of any format, one or several, as one table."""

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from attnlab.errors import RequestError
from attnlab.inputs import suggest_file

from ..metrics import split_words
from ..rows import TextTable
from ..run_names import split_run_names
from .blocks import TextBlock
from .delimited import read_delimited
from .exports import tidy_export
from .json_file import is_json, read_json
from .latex import find_latex, is_latex, read_latex
from .lm_eval import LM_EVAL, name_lm_eval_seeds
from .markdown import find_markdown, read_markdown

MAX_BYTES = 100_000_000
MAX_FOLDERS = 10_000
"""Folders below the one given in which results are looked for."""
ARM_NAMES = frozenset({"arm", "method", "variant", "mechanism", "system", "approach", "model"})


def read_files(paths: Sequence[str], chosen: int | None = None) -> TextTable:
    """Read one or several files as one table. chosen: which table of a file with several, from 1."""
    tables = [read_file(path, chosen) for path in paths]
    return tables[0] if len(tables) == 1 else _join_tables(tables)


def read_file(path: str, chosen: int | None = None) -> TextTable:
    """Read one file: CSV, JSON, Markdown, LaTeX, or the export of a tracker."""
    text = _read_text(path)
    if is_json(text):
        return tidy_export(read_json(path, text))
    lines = text.splitlines()
    if blocks := find_markdown(lines):
        return read_markdown(path, _choose(path, blocks, chosen))
    if is_latex(text):
        return read_latex(path, _choose(path, find_latex(text), chosen))
    if chosen not in (None, 1):
        raise RequestError(f"--map table={chosen}: '{path}' has one table")
    return tidy_export(read_delimited(path, lines))


def _read_text(path: str) -> str:
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise RequestError(f"'{path}' has more than {MAX_BYTES // 1_000_000} MB; give the scores of runs")
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        hint = suggest_file(Path(path)) if isinstance(error, FileNotFoundError) else ""
        raise RequestError(f"cannot read '{path}': {error.strerror or error}{hint}") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise RequestError(
            f"cannot read '{path}': it is not UTF-8 text. Tables are read from CSV, JSON, LaTeX and Markdown; of a PDF "
            "or a spreadsheet, copy or export the table as one of these"
        ) from error


def _choose(path: str, blocks: Sequence[TextBlock], chosen: int | None) -> TextBlock:
    if chosen is None and len(blocks) > 1:
        lines = ", ".join(f"{number} (line {block.line})" for number, block in enumerate(blocks[:8], start=1))
        raise RequestError(f"'{path}' has {len(blocks)} tables: {lines}; choose one with --map table=1")
    number = chosen or 1
    if not 1 <= number <= len(blocks):
        raise RequestError(
            f"--map table={number}: '{path}' has {len(blocks)} {'table' if len(blocks) == 1 else 'tables'}"
        )
    return blocks[number - 1]


def _join_tables(tables: Sequence[TextTable]) -> TextTable:
    """Join the rows of several files; where no column names the arm or the seed, the names of the files do."""
    first = tables[0]
    names = _shorten([table.name for table in tables])
    header = list(dict.fromkeys(name for table in tables for name in table.header))
    rows = [
        (f"{line} of '{name}'", {column: row.get(column, "") for column in header})
        for name, table in zip(names, tables, strict=True) for line, row in table.rows
    ]  # fmt: skip
    files = [name for name, table in zip(names, tables, strict=True) for _ in table.rows]
    title = ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]} ({len(names)} files)"
    joined = replace(first, name=title, header=tuple(header), rows=tuple(rows), is_joined=True)
    if first.form == LM_EVAL:
        return name_lm_eval_seeds(joined)
    known = {"".join(split_words(name)) for name in header}
    pairs = split_run_names(names)
    added: dict[str, list[str]] = {}
    if not known & ARM_NAMES:
        added["arm"] = [pairs[name][0] if pairs else name for name in files]
    if pairs and not _tells_runs_apart(joined, "seed"):
        added["seed"] = [pairs[name][1] for name in files]
    remark = (f"{' and '.join(added)} from the names of the files",) if added else ()
    return replace(joined.add_columns(added), remarks=(*first.remarks, *remark)) if added else joined


def _tells_runs_apart(table: TextTable, column: str) -> bool:
    return column in table.header and len(set(table.column(column))) > 1


def _shorten(paths: Sequence[str]) -> list[str]:
    """Return the shortest names of files that tell them apart: without what all of them share."""
    parts = [Path(path).with_suffix("").parts for path in paths]
    while len({part[-1] for part in parts}) == 1 and all(len(part) > 1 for part in parts):
        parts = [part[:-1] for part in parts]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return list(paths)


def find_result_files(folder: Path) -> list[str]:
    """Return lm-eval's results*.json in a folder and the folders in it."""
    files: list[str] = []
    for number, (place, _, names) in enumerate(os.walk(folder)):
        if number == MAX_FOLDERS:
            raise RequestError(f"{folder} holds more than {MAX_FOLDERS:,} folders; give the one that has the results")
        files += [os.path.join(place, name) for name in fnmatch.filter(names, "results*.json")]
    return sorted(files)
