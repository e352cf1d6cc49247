"""A user's own stages on the command line: `--plugin FILE.py` runs the file, whose decorators register them."""

import runpy
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

import attnlab.errors
from attnlab.errors import AttnlabError, RequestError
from attnlab.inputs import expand_path, suggest_file

PLUGIN = "attnlab_plugin"
"""The name of the module as which a plugin runs."""

_imported: set[str] = set()
"""The user's own files that plugins have imported."""


def load_plugins(paths: Iterable[str] | None) -> None:
    """Run every file given with --plugin."""
    for path in paths or ():
        load_plugin(path)


def load_plugin(path: str) -> None:
    """Run a Python file for the stages it registers."""
    file = expand_path(path)
    if not file.is_file():
        hint = "" if file.exists() else suggest_file(file)
        raise RequestError(f"--plugin needs a Python file; there is none at '{path}'{hint}")
    known = set(sys.modules)
    try:
        runpy.run_path(path, run_name=PLUGIN)
    except SystemExit as error:
        ends = f"{path} ends the program (exit {error.code!r}) instead of registering stages; remove that call"
        raise RequestError(ends) from error
    except Exception as error:
        # The user's code may raise anything; the line that raised it is what they need to see.
        place = find_plugin_code(error) or path
        what = str(error) if isinstance(error, AttnlabError) else f"{type(error).__name__}: {error}"
        raise RequestError(f"{place}: {what}") from error
    finally:
        _imported.update(_list_files(set(sys.modules) - known))


@contextmanager
def blame_plugins() -> Iterator[None]:
    """Make an error of what the code of a plugin raises while a verb runs, with the file and the line."""
    try:
        yield
    except (AttnlabError, KeyboardInterrupt, BrokenPipeError, MemoryError, typer.Exit, typer.Abort):
        raise
    except (Exception, SystemExit) as error:
        place = find_plugin_code(error)
        if not place:
            raise
        raise RequestError(f"{place}: {type(error).__name__}: {error}") from error


def find_plugin_code(error: BaseException) -> str:
    """Return the file and line of the innermost frame of an error that is in a plugin, or in a file of the user's that
    a plugin imported; an empty string if none is."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        is_generated = file.startswith("<")  # the methods that `dataclass` writes
        if not is_generated and (frame.f_globals.get("__name__") == PLUGIN or file in _imported):
            place = f"{file}, line {line}"
    return place


def _list_files(modules: Iterable[str]) -> Iterator[str]:
    """Yield the files of modules that are neither attnlab's nor installed."""
    folders = [
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("platstdlib"),
        str(Path(attnlab.errors.__file__).parent),
    ]
    for name in modules:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None or {"site-packages", "dist-packages"} & {*Path(file).parts}:
            continue
        if not any(Path(file).is_relative_to(folder) for folder in folders):
            yield file
