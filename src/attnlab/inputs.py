"""Paths and JSON as users give them: expanded, checked and parsed within limits, with one error for each problem."""

import difflib
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from attnlab.errors import RequestError

MAX_DEPTH = 100
"""Levels of lists and objects in JSON; deeper values would exhaust the stack of whoever walks them."""
MAX_DIGITS = 400
"""Digits of a whole number in JSON; a float has at most 309 before its point."""
MIN_LIKENESS = 0.8
"""Of the names of two files without their endings, so that one may be meant for the other."""
MAX_NAMES = 3
"""Files of a folder that an error names."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def expand_path(path: str | os.PathLike[str]) -> Path:
    """Return a path with `~` expanded; refuse one that this system cannot look up, whether or not it exists."""
    try:
        expanded = Path(path).expanduser()
        expanded.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except RuntimeError as error:
        raise RequestError(f"'{path}' has no home folder to expand ~ to; write the path in full") from error
    except ValueError as error:
        raise RequestError(f"{str(path)!r} cannot be a path: {error}") from error
    except OSError as error:
        shown = f"{str(path)[:60]}…" if len(str(path)) > 200 else path
        raise RequestError(f"cannot look up '{shown}': {error.strerror}; give another path") from error
    return expanded


def suggest_file(path: Path) -> str:
    """Return how the sentence about a missing file goes on: a file that is close by name, or what the folder holds."""
    folder = "the current folder" if path.parent == Path() else str(path.parent)
    try:
        names = sorted(other.name for other in path.parent.iterdir() if not other.name.startswith("."))
    except OSError:
        return f"; there is no folder {path.parent} either" if not path.parent.is_dir() else ""
    stem = _get_stem(path.name)
    ratios = {name: difflib.SequenceMatcher(None, stem, _get_stem(name)).ratio() for name in names}
    # Endings are left out, since .txt in common makes no names alike.
    best = max(names, key=lambda name: (ratios[name], Path(name).suffix == path.suffix), default="")
    if best and ratios[best] >= MIN_LIKENESS:
        return f", did you mean '{best}'?"
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"; {folder} holds {', '.join(names[:MAX_NAMES])}{more}" if names else f"; {folder} is empty"


def _get_stem(name: str) -> str:
    return (name.partition(".")[0] or name).lower()


def check_regular(path: Path) -> None:
    """Refuse a pipe, a socket or a device, which may never end; a missing file and a folder pass."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except OSError:
        return  # whoever opens the file reports the error
    if kind in _KINDS:
        raise RequestError(f"{path} is {_KINDS[kind]}, which cannot be read twice; write it to a file and give that")


def is_whole_number(text: str) -> bool:
    """Tell whether a text is a whole number that `int` reads: `isdigit` is true for ² and for thousands of digits."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parse JSON with the options of `json.loads`; whatever is wrong with it is a JSONDecodeError.

    Values nested deeper than MAX_DEPTH, whole numbers of more than MAX_DIGITS digits and half surrogate pairs are
    errors, since they parse and then fail wherever they are walked, printed or encoded.
    """
    shown = text if isinstance(text, str) else ""
    try:
        if not isinstance(text, str | bytes | bytearray):
            raise json.JSONDecodeError(f"text is needed, not {text!r}", "", 0)
        value = json.loads(text, parse_int=_parse_int, **options)
    except json.JSONDecodeError:
        raise
    except RecursionError as error:
        raise json.JSONDecodeError(f"nested deeper than {MAX_DEPTH} levels", shown, 0) from error
    except ValueError as error:  # not UTF-8, a number that is too long, or a refusal of the options
        raise json.JSONDecodeError(str(error), shown, 0) from error
    _check_depth(value, shown)
    escaped = text if isinstance(text, str) else text.decode("utf-8", "replace")
    if _SURROGATE.search(escaped):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise json.JSONDecodeError("half a surrogate pair, which is no character", shown, 0) from error
    return value


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a whole number of {len(digits):,} digits")
    return int(digits)


def _check_depth(value: Any, text: str) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list | tuple)
            for child in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(child, dict | list | tuple)
        ]
        if not level:
            return
    raise json.JSONDecodeError(f"nested deeper than {MAX_DEPTH} levels", text, 0)
