"""Numbers on the command line: a matrix in a .json or .csv file, or a few numbers separated by commas."""

import csv
import json
from typing import Any

from attnlab.errors import RequestError
from attnlab.inputs import check_regular, expand_path, is_whole_number, parse_json, suggest_file

ENDINGS = (".json", ".csv")


def read_file(option: str, path: str) -> Any:
    """Read a file: lists of numbers in JSON, or rows of numbers in CSV."""
    source = expand_path(path)
    if source.suffix.lower() not in ENDINGS:
        raise RequestError(f"{option} reads a file that ends in {' or '.join(ENDINGS)}, not '{path}'")
    check_regular(source)
    try:
        text = source.read_text(encoding="utf-8-sig")
    except OSError as error:
        hint = suggest_file(source) if isinstance(error, FileNotFoundError) else ""
        raise RequestError(f"{option} cannot read '{path}': {error.strerror}{hint}") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{option} cannot read '{path}': it is not UTF-8 text") from error
    return _read_json(option, path, text) if source.suffix.lower() == ".json" else _read_csv(option, path, text)


def _read_json(option: str, path: str, text: str) -> Any:
    try:
        numbers = parse_json(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RequestError(f"{option}: '{path}' is not JSON ({error.msg}, {where})") from error
    if not isinstance(numbers, list):
        raise RequestError(f"{option}: '{path}' must hold lists of numbers, such as [[1, 0], [0, 1]]")
    return numbers


def _read_csv(option: str, path: str, text: str) -> list[list[float]]:
    rows = []
    for number, words in enumerate(csv.reader(text.splitlines()), start=1):
        if not any(word.strip() for word in words):
            continue
        try:
            rows.append([float(word) for word in words])
        except ValueError as error:
            raise RequestError(f"{option}: line {number} of '{path}' must hold only numbers ({error})") from error
    return rows


def read_vector(option: str, text: str) -> Any:
    """Read numbers separated by commas, or a file of them."""
    if not text.lower().endswith(ENDINGS):
        try:
            return [float(word) for word in text.split(",")]
        except ValueError as error:
            raise RequestError(
                f"{option} takes numbers separated by commas, such as 1,0.5,-2; it has '{text}'"
            ) from error
    rows = read_file(option, text)
    # A file of one row, or of one number per row, is a vector too.
    if rows and isinstance(rows[0], list):
        return rows[0] if len(rows) == 1 else [row[0] for row in rows if len(row) == 1] or rows
    return rows


def read_indices(option: str, text: str) -> list[int]:
    """Read whole numbers separated by commas."""
    words = [word.strip() for word in text.split(",")]
    wrong = next((word for word in words if not is_whole_number(word)), None)
    if wrong is not None:
        raise RequestError(f"{option} takes the indices of keys separated by commas, such as 0,1; it has '{wrong}'")
    return [int(word) for word in words]
