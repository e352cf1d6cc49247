"""A user's own stages on the command line: `--plugin FILE.py` runs the file, whose decorators register them."""

import runpy
import traceback
from collections.abc import Iterable

from attnlab.errors import AttnlabError, RequestError
from attnlab.inputs import expand_path, suggest_file


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
    try:
        runpy.run_path(path, run_name="attnlab_plugin")
    except AttnlabError as error:
        raise RequestError(f"{path}: {error}") from error
    except SystemExit as error:
        ends = f"{path} ends the program (exit {error.code!r}) instead of registering stages; remove that call"
        raise RequestError(ends) from error
    except Exception as error:
        # The user's code may raise anything; the line that raised it is what they need to see.
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        where = f", line {frames[-1].lineno}" if frames else ""
        raise RequestError(f"{path}{where}: {type(error).__name__}: {error}") from error
